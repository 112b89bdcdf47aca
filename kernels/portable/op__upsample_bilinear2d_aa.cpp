#include "orch_selected/op__upsample_bilinear2d_aa.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/interpolate.h"
#include "util/move_items.h"

namespace orch::portable {
namespace {

/// Weights that are computed once for an output item; those of scales beyond 7
/// are computed wherever they are used.
constexpr int32_t kKept = 16;

/// The input items that an output item is made of: a triangle around its
/// centre. Source: PyTorch, UpSampleKernel.cpp, antialias.
template <typename C>
struct Triangle {
  int32_t first;
  int32_t count;
  C centre;
  C narrow;  // 1 / scale
  C total;
  C kept[kKept];

  Triangle(const ScaledAxis& axis, C scale, int32_t o) {
    if (axis.in == axis.out) {
      // An axis that keeps its size is left as it is, whatever its scale.
      first = o;
      count = 1;
      kept[0] = 1;
      return;
    }
    centre = scale * (static_cast<C>(o) + C(0.5F));
    const C support = scale >= 1 ? scale : C(1);
    narrow = scale >= 1 ? 1 / scale : C(1);
    first = truncate_narrow(centre - support + C(0.5F));
    if (first < 0) first = 0;
    int32_t end = truncate_narrow(centre + support + C(0.5F));
    if (end > axis.in) end = axis.in;
    count = end > first ? end - first : 0;
    total = 0;
    for (int32_t i = 0; i < count; ++i) total += raw(i);
    for (int32_t i = 0; i < count && i < kKept; ++i) kept[i] = shared(i);
  }

  C weight(int32_t i) const { return i < kKept ? kept[i] : shared(i); }

 private:
  C raw(int32_t i) const {
    C x = (static_cast<C>(first + i) - centre + C(0.5F)) * narrow;
    if (x < 0) x = -x;
    return x < 1 ? 1 - x : C(0);
  }
  C shared(int32_t i) const { return total != 0 ? raw(i) / total : raw(i); }
};

template <typename T>
void upsample(const ScaledAxis* axes, const Tensor& self, Tensor& out) {
  using C = Real<T>;
  const Strides from(self);
  const Strides to(out);
  StridedLoop planes = loop_over_images(out, to, from);
  if (!planes.valid()) return;
  const C scale_y = scale_of<C>(axes[0]);
  const C scale_x = scale_of<C>(axes[1]);
  for (int32_t h = 0; h < axes[0].out; ++h) {
    const Triangle<C> y(axes[0], scale_y, h);
    for (int32_t w = 0; w < axes[1].out; ++w) {
      const Triangle<C> x(axes[1], scale_x, w);
      const T* const first =
          self.data<T>() + y.first * from[2] + x.first * from[3];
      T* const target = out.mutable_data<T>() + h * to[2] + w * to[3];
      for (; planes.valid(); planes.next()) {
        for (int32_t n = 0; n < planes.row_size(); ++n) {
          const T* row = first + planes.offset(1) + n * planes.row_stride(1);
          C sum = 0;
          for (int32_t i = 0; i < y.count; ++i, row += from[2]) {
            C across = 0;
            for (int32_t k = 0; k < x.count; ++k) {
              across += static_cast<C>(row[k * from[3]]) * x.weight(k);
            }
            sum += across * y.weight(i);
          }
          target[planes.offset(0) + n * planes.row_stride(0)] =
              item_from<T>(sum);
        }
      }
      planes.restart();
    }
  }
}

/// Such weights in an image of bytes.
struct ByteWeights {
  const Triangle<double>& at;
  int32_t bits;
  int32_t count;
  int32_t kept[kKept];

  ByteWeights(const Triangle<double>& triangle, int32_t precision)
      : at(triangle), bits(precision), count(triangle.count) {
    for (int32_t i = 0; i < count && i < kKept; ++i) kept[i] = fixed(i);
  }

  int32_t weight(int32_t i) const { return i < kKept ? kept[i] : fixed(i); }

  static int32_t bits_of(const ScaledAxis& axis, double scale) {
    double largest = 0;
    for (int32_t o = 0; o < axis.out; ++o) {
      const Triangle<double> at(axis, scale, o);
      for (int32_t i = 0; i < at.count; ++i) {
        if (at.weight(i) > largest) largest = at.weight(i);
      }
    }
    return weight_bits(largest);
  }

 private:
  int32_t fixed(int32_t i) const { return fixed_weight(at.weight(i), bits); }
};

}  // namespace

// aten::_upsample_bilinear2d_aa.out(Tensor self, SymInt[2] output_size,
//   bool align_corners, float? scales_h=None, float? scales_w=None, *,
//   Tensor(a!) out) -> Tensor(a!)
Error _upsample_bilinear2d_aa_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(5);

  ORCH_CHECK(self.dtype == out.dtype && self.dim == 4, Error::InvalidArgument);
  // Where the sizes stay, items are copied, of whatever dtype.
  ORCH_CHECK(
      DtypeSet{selected::aten__upsample_bilinear2d_aa_out}.has(out.dtype),
      Error::DtypeNotSelected);
  int32_t sizes[4] = {self.size(0), self.size(1)};
  ORCH_TRY(read_ints(args.int_list(1), 2, 1, sizes + 2));
  ScaledAxis axes[2];
  for (int i = 0; i < 2; ++i) {
    axes[i] = {self.size(2 + i), sizes[2 + i], args.boolean(2),
               args.has(3 + i) ? args.real(3 + i) : 0};
    ORCH_CHECK(axes[i].in > 0, Error::InvalidArgument);
  }
  ORCH_TRY(resize_output(out, sizes, self));
  if (axes[0].in == axes[0].out && axes[1].in == axes[1].out) {
    // Keeps the sign of 0.
    copy_items(self, out);
    return Error::Ok;
  }
  constexpr DtypeSet kDtypes = selected::aten__upsample_bilinear2d_aa_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsSame<T, uint8_t>) {
      upsample_bytes<Triangle<double>, ByteWeights>(axes, self, out);
    } else {
      upsample<T>(axes, self, out);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
