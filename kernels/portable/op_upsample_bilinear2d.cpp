#include "orch_selected/op_upsample_bilinear2d.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/interpolate.h"

namespace orch::portable {
namespace {

/// The two input items between which an output item lies.
template <typename C>
struct Neighbours {
  int32_t first;
  int32_t second;
  C first_weight;
  C second_weight;

  Neighbours(const ScaledAxis& axis, C scale, int32_t o) {
    first = o;
    second = o;
    second_weight = 0;
    if (axis.in != axis.out) {
      const C o_real = static_cast<C>(o);
      C at =
          axis.corners ? scale * o_real : scale * (o_real + C(0.5F)) - C(0.5F);
      if (at < 0) at = 0;
      first = at < C(0x1p30F) ? static_cast<int32_t>(at) : kMaxExtent;
      if (first > axis.in - 1) first = axis.in - 1;
      second = first < axis.in - 1 ? first + 1 : first;
      second_weight = at - static_cast<C>(first);
      if (second_weight > 1) second_weight = 1;
    }
    first_weight = 1 - second_weight;
  }
};

/// An axis of which the factor is given. Errors: InvalidArgument.
Error set_factor(ScaledAxis& axis, double factor) {
  const double size = static_cast<double>(axis.in) * factor;
  // Also false for NaN.
  ORCH_CHECK(size >= 1 && size <= kMaxExtent, Error::InvalidArgument);
  axis.out = static_cast<int32_t>(size);
  axis.factor = factor;
  return Error::Ok;
}

template <typename T>
void upsample(const ScaledAxis* axes, const Tensor& input, Tensor& out) {
  using C = Real<T>;
  const Strides from(input);
  const Strides to(out);
  StridedLoop planes = loop_over_images(out, to, from);
  if (!planes.valid()) return;
  const C scale_y = scale_of<C>(axes[0]);
  const C scale_x = scale_of<C>(axes[1]);
  for (int32_t h = 0; h < axes[0].out; ++h) {
    const Neighbours<C> y(axes[0], scale_y, h);
    for (int32_t w = 0; w < axes[1].out; ++w) {
      const Neighbours<C> x(axes[1], scale_x, w);
      const T* const top = input.data<T>() + y.first * from[2];
      const T* const bottom = input.data<T>() + y.second * from[2];
      const int32_t left = x.first * from[3];
      const int32_t right = x.second * from[3];
      T* const target = out.mutable_data<T>() + h * to[2] + w * to[3];
      for (; planes.valid(); planes.next()) {
        int32_t at = planes.offset(1);
        int32_t at_out = planes.offset(0);
        for (int32_t n = planes.row_size(); n != 0; --n) {
          const C upper = static_cast<C>(top[at + left]) * x.first_weight +
                          static_cast<C>(top[at + right]) * x.second_weight;
          const C lower = static_cast<C>(bottom[at + left]) * x.first_weight +
                          static_cast<C>(bottom[at + right]) * x.second_weight;
          target[at_out] =
              item_from<T>(upper * y.first_weight + lower * y.second_weight);
          at += planes.row_stride(1);
          at_out += planes.row_stride(0);
        }
      }
      planes.restart();
    }
  }
}

/// The weights of such neighbours in an image of bytes.
struct ByteWeights {
  int32_t bits;
  int32_t count;
  int32_t weights[2];

  ByteWeights(const Neighbours<double>& at, int32_t precision)
      : bits(precision), count(at.first == at.second ? 1 : 2) {
    weights[0] = fixed_weight(count == 1 ? 1 : at.first_weight, bits);
    weights[1] = fixed_weight(at.second_weight, bits);
  }
  int32_t weight(int32_t i) const { return weights[i]; }

  static int32_t bits_of(const ScaledAxis& axis, double scale) {
    double largest = 0;
    for (int32_t o = 0; o < axis.out; ++o) {
      const Neighbours<double> at(axis, scale, o);
      if (at.first == at.second) return weight_bits(1);
      if (at.first_weight > largest) largest = at.first_weight;
      if (at.second_weight > largest) largest = at.second_weight;
    }
    return weight_bits(largest);
  }
};

/// The same for images of bytes.
template <typename T>
void upsample_bytes(const ScaledAxis* axes, const Tensor& input, Tensor& out) {
  const Strides from(input);
  const Strides to(out);
  StridedLoop planes = loop_over_images(out, to, from);
  if (!planes.valid()) return;
  const double scale_y = scale_of<double>(axes[0]);
  const double scale_x = scale_of<double>(axes[1]);
  const int32_t bits_y = ByteWeights::bits_of(axes[0], scale_y);
  const int32_t bits_x = ByteWeights::bits_of(axes[1], scale_x);
  for (int32_t h = 0; h < axes[0].out; ++h) {
    const Neighbours<double> y(axes[0], scale_y, h);
    const ByteWeights rows(y, bits_y);
    for (int32_t w = 0; w < axes[1].out; ++w) {
      const Neighbours<double> x(axes[1], scale_x, w);
      const ByteWeights columns(x, bits_x);
      const T* const first =
          input.data<T>() + y.first * from[2] + x.first * from[3];
      T* const target = out.mutable_data<T>() + h * to[2] + w * to[3];
      for (; planes.valid(); planes.next()) {
        for (int32_t n = 0; n < planes.row_size(); ++n) {
          target[planes.offset(0) + n * planes.row_stride(0)] =
              blend_bytes(first + planes.offset(1) + n * planes.row_stride(1),
                          from[2], from[3], columns, rows);
        }
      }
      planes.restart();
    }
  }
}

}  // namespace

// aten::upsample_bilinear2d.vec_out(Tensor input, SymInt[]? output_size,
//   bool align_corners, float[]? scale_factors, *, Tensor(a!) out)
//   -> Tensor(a!)
Error upsample_bilinear2d_vec_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(4);

  ORCH_CHECK(input.dtype == out.dtype && input.dim == 4,
             Error::InvalidArgument);
  // One of the two says how large the output is.
  ORCH_CHECK(args.has(1) != args.has(3), Error::InvalidArgument);
  ScaledAxis axes[2];
  for (int i = 0; i < 2; ++i) {
    axes[i] = {input.size(2 + i), 0, args.boolean(2), 0};
    ORCH_CHECK(axes[i].in > 0, Error::InvalidArgument);
    if (args.has(1)) {
      const IntList sizes = args.int_list(1);
      ORCH_CHECK(sizes.size() == 2, Error::InvalidArgument);
      ORCH_TRY(read_int(sizes[i], 1, axes[i].out));
    } else {
      const Span<const double> factors = args.double_list(3);
      ORCH_CHECK(factors.size() == 2, Error::InvalidArgument);
      ORCH_TRY(set_factor(axes[i], factors[static_cast<size_t>(i)]));
    }
  }
  const int32_t sizes[] = {input.size(0), input.size(1), axes[0].out,
                           axes[1].out};
  ORCH_TRY(resize_output(out, sizes, input));
  constexpr DtypeSet kDtypes = selected::aten_upsample_bilinear2d_vec_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsSame<T, uint8_t>) {
      upsample_bytes<T>(axes, input, out);
    } else {
      upsample<T>(axes, input, out);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
