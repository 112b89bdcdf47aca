#include "orch_selected/op_upsample_bilinear2d.h"

#include "orch/kernel.h"
#include "prepared.h"
#include "util/check.h"
#include "util/dot_mve.h"
#include "util/dtype.h"
#include "util/interpolate.h"
#include "util/isa.h"

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

/// An item between four others, in the order of PyTorch's sums.
template <typename T, typename C>
ORCH_ALWAYS_INLINE T blend(const T* top, const T* bottom, int32_t left,
                           int32_t right, const Neighbours<C>& x,
                           const Neighbours<C>& y) {
  const C upper = static_cast<C>(top[left]) * x.first_weight +
                  static_cast<C>(top[right]) * x.second_weight;
  const C lower = static_cast<C>(bottom[left]) * x.first_weight +
                  static_cast<C>(bottom[right]) * x.second_weight;
  return item_from<T>(upper * y.first_weight + lower * y.second_weight);
}

/// Columns of an output row: offsets of the neighbours, and their weights.
/// Known to the assembly below.
template <typename C>
struct Columns {
  static constexpr int32_t kCount = 16;
  int32_t left[kCount];
  int32_t right[kCount];
  C left_weight[kCount];
  C right_weight[kCount];
};

#if ORCH_FLOAT_VECTORS

/// blend_row for floats; false, where vectors would take a subnormal number
/// for 0.
__attribute__((noinline)) bool blend_vectors(const Columns<float>& columns,
                                             const float* top,
                                             const float* bottom,
                                             const Neighbours<float>& y,
                                             float* to, int32_t count) {
  const FlushFlags flags;
  const void* column = &columns;
  int32_t flushed;
  asm volatile(
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrw.32 q1, [%[column], #64]\n"
      "vldrw.32 q2, [%[column], #128]\n"
      "vldrw.32 q3, [%[column], #192]\n"
      "vldrw.32 q0, [%[column]], #16\n"
      "vldrw.u32 q4, [%[top], q0, uxtw #2]\n"
      "vmul.f32 q4, q4, q2\n"
      "vldrw.u32 q5, [%[top], q1, uxtw #2]\n"
      "vmul.f32 q5, q5, q3\n"
      "vadd.f32 q4, q4, q5\n"
      "vldrw.u32 q6, [%[bottom], q0, uxtw #2]\n"
      "vmul.f32 q6, q6, q2\n"
      "vldrw.u32 q5, [%[bottom], q1, uxtw #2]\n"
      "vmul.f32 q5, q5, q3\n"
      "vadd.f32 q6, q6, q5\n"
      "vmul.f32 q4, q4, %[first]\n"
      "vmul.f32 q6, q6, %[second]\n"
      "vadd.f32 q4, q4, q6\n"
      "vstrw.32 q4, [%[to]], #16\n"
      "letp lr, 1b\n"
      "vmrs %[flushed], fpscr\n"
      "and %[flushed], %[flushed], #0x88\n"
      : [column] "+r"(column), [to] "+r"(to), [flushed] "=&r"(flushed)
      : [top] "r"(top), [bottom] "r"(bottom), [count] "r"(count),
        [first] "r"(y.first_weight), [second] "r"(y.second_weight)
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "memory");
  return flushed == 0;
}

#endif

/// A part of an output row, whose columns lie side by side.
template <typename T, typename C>
ORCH_HOT void blend_row(const Columns<C>& columns, const T* top,
                        const T* bottom, const Neighbours<C>& y, T* to,
                        int32_t count) {
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<T, float>) {
    if (blend_vectors(columns, top, bottom, y, to, count)) return;
  }
#endif
  for (int32_t i = 0; i < count; ++i) {
    const int32_t left = columns.left[i];
    const int32_t right = columns.right[i];
    const C left_weight = columns.left_weight[i];
    const C right_weight = columns.right_weight[i];
    const C upper = static_cast<C>(top[left]) * left_weight +
                    static_cast<C>(top[right]) * right_weight;
    const C lower = static_cast<C>(bottom[left]) * left_weight +
                    static_cast<C>(bottom[right]) * right_weight;
    to[i] = item_from<T>(upper * y.first_weight + lower * y.second_weight);
  }
}

/// Images whose columns lie side by side in `out`.
template <typename T>
void upsample_rows(const ScaledAxis* axes, const Tensor& input,
                   const Strides& from, Tensor& out, const Strides& to,
                   StridedLoop& planes) {
  using C = Real<T>;
  const C scale_y = scale_of<C>(axes[0]);
  const C scale_x = scale_of<C>(axes[1]);
  Columns<C> columns;
  for (int32_t w = 0; w < axes[1].out; w += columns.kCount) {
    const int32_t left = axes[1].out - w;
    const int32_t count = left < columns.kCount ? left : columns.kCount;
    for (int32_t i = 0; i < count; ++i) {
      const Neighbours<C> x(axes[1], scale_x, w + i);
      columns.left[i] = x.first * from[3];
      columns.right[i] = x.second * from[3];
      columns.left_weight[i] = x.first_weight;
      columns.right_weight[i] = x.second_weight;
    }
    for (int32_t h = 0; h < axes[0].out; ++h) {
      const Neighbours<C> y(axes[0], scale_y, h);
      for (; planes.valid(); planes.next()) {
        for (int32_t n = 0; n < planes.row_size(); ++n) {
          const T* const plane =
              input.data<T>() + planes.offset(1) + n * planes.row_stride(1);
          blend_row<T, C>(columns, plane + y.first * from[2],
                          plane + y.second * from[2], y,
                          out.mutable_data<T>() + planes.offset(0) +
                              n * planes.row_stride(0) + h * to[2] + w,
                          count);
        }
      }
      planes.restart();
    }
  }
}

template <typename T>
void upsample(const ScaledAxis* axes, const Tensor& input, Tensor& out) {
  using C = Real<T>;
  const Strides from(input);
  const Strides to(out);
  StridedLoop planes = loop_over_images(out, to, from);
  if (!planes.valid()) return;
  if (to[3] == 1) {
    upsample_rows<T>(axes, input, from, out, to, planes);
    return;
  }
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
          target[at_out] =
              blend<T, C>(top, bottom, at + left, at + right, x, y);
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

/// What a prepared call computes.
template <typename T>
void upsample_pixels(const PreparedCall& prepared) {
  const auto& call = static_cast<const ScaleCall&>(prepared);
  const bool corners = call.corners != 0;
  const ScaledAxis rows = {call.rows.in, call.rows.out, corners, 0};
  const ScaledAxis columns = {call.columns.in, call.columns.out, corners, 0};
  const int32_t size = call.pixel_size;
  const int32_t row_size = columns.in * size;
  const T* const input = static_cast<const T*>(call.input);
  T* to = static_cast<T*>(call.out);
  for (int32_t h = 0; h < call.count; ++h) {
    const Neighbours<float> y(rows, call.rows.scale, call.first + h);
    const T* const top = input + (y.first - call.in_first) * row_size;
    const T* const bottom = input + (y.second - call.in_first) * row_size;
    for (int32_t w = 0; w < columns.out; ++w) {
      const Neighbours<float> x(columns, call.columns.scale, w);
      for (int32_t n = 0; n < size; ++n) {
        *to++ = blend<T, float>(top, bottom, x.first * size + n,
                                x.second * size + n, x, y);
      }
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

// Prepared: channels last, one image.
void upsample_bilinear2d(const PreparedCall& call) {
  upsample_pixels<float>(call);
}

void upsample_bilinear2d_int8(const PreparedCall& call) {
  upsample_pixels<int8_t>(call);
}

}  // namespace orch::portable
