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

}  // namespace

// aten::upsample_bilinear2d.vec_out(Tensor input, SymInt[]? output_size,
//   bool align_corners, float[]? scale_factors, *, Tensor(a!) out)
//   -> Tensor(a!)
Error upsample_bilinear2d_vec_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(4);

  ScaledAxis axes[2];
  ORCH_TRY(scale_images(input, args, 1, 3, args.boolean(2), axes, out));
  constexpr DtypeSet kDtypes = selected::aten_upsample_bilinear2d_vec_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsSame<T, uint8_t>) {
      upsample_bytes<Neighbours<double>, ByteWeights>(axes, input, out);
    } else {
      upsample<T>(axes, input, out);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
