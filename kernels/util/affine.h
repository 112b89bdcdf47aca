// Affine quantization: q = round(x / scale) + zero_point, and back.
//
// Scales are used as floats and zero points as 32-bit integers, whatever they
// are stored in, as ExecuTorch's kernels do.
#pragma once

#include <stdint.h>
#include <string.h>

#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/prepared.h"
#include "util/round.h"
#include "util/strided_loop.h"

namespace orch {

/// Dtypes of quantized tensors.
inline constexpr DtypeSet kQuantized =
    dtype_set(ScalarType::Byte, ScalarType::Char, ScalarType::Short,
              ScalarType::UInt16, ScalarType::Int);

/// What turns floats into quantized numbers and back.
struct Affine {
  float scale;
  int32_t zero_point;
  int32_t low;   // smallest quantized number
  int32_t high;  // largest
};

/// Items that share their parameters: from `from` to `to`, steps in items.
struct AffineRow {
  const void* from;
  void* to;
  int32_t from_step;
  int32_t to_step;
  int32_t count;
};

#if ORCH_FLOAT_VECTORS
/// Whether vectors give the same: they take subnormals for 0, which makes no
/// difference as long as scales are far from them.
inline bool suits_vectors(const Affine& affine) {
  return affine.scale > 0x1p-64F && affine.scale < 0x1p64F;
}

inline VectorAffine vector_affine(const Affine& affine) {
  return {1.0F / affine.scale, static_cast<float>(affine.zero_point),
          static_cast<float>(affine.low), static_cast<float>(affine.high)};
}

/// Quantizes eight items at a time if their limits are those of int8; how many.
inline int32_t quantize_eights(const float* from, int8_t* to, int32_t count,
                               const VectorAffine& affine) {
  if (count < 8 || affine.low != INT8_MIN || affine.high != INT8_MAX) return 0;
  asm volatile(
      "vdup.32 q2, %[low]\n"
      "dls lr, %[eights]\n"
      "1:\n"
      "vld20.32 {q0, q1}, [%[from]]\n"
      "vld21.32 {q0, q1}, [%[from]]!\n"
      "vmul.f32 q0, q0, %[inverse]\n"
      "vmul.f32 q1, q1, %[inverse]\n"
      // What is no number becomes less than the lower limit.
      "vmaxnm.f32 q0, q0, q2\n"
      "vmaxnm.f32 q1, q1, q2\n"
      "vcvtn.s32.f32 q0, q0\n"
      "vcvtn.s32.f32 q1, q1\n"
      "vqmovnb.s32 q0, q0\n"
      "vqmovnt.s32 q0, q1\n"
      "vqadd.s16 q0, q0, %[zero]\n"
      "vqmovnb.s16 q0, q0\n"
      "vstrb.16 q0, [%[to]], #8\n"
      "le lr, 1b\n"
      : [from] "+r"(from), [to] "+l"(to)
      : [eights] "r"(count / 8), [inverse] "r"(affine.inverse),
        [zero] "r"(static_cast<int32_t>(affine.zero_point)),
        [low] "r"(float{INT16_MIN})
      : "lr", "q0", "q1", "q2", "cc", "memory");
  return count / 8 * 8;
}

/// Quantizes `count` items.
inline void quantize_vectors(const float* from, int8_t* to, int32_t count,
                             const VectorAffine& affine) {
  if constexpr (kFavourSpeed) {
    const int32_t done = quantize_eights(from, to, count, affine);
    from += done;
    to += done;
    count -= done;
  }
  asm volatile(
      "vdup.32 q1, %[low]\n"
      "vdup.32 q2, %[high]\n"
      "wlstp.32 lr, %[count], 2f\n"
      "1:\n"
      "vldrw.32 q0, [%[from]], #16\n"
      "vmul.f32 q0, q0, %[inverse]\n"
      "vrintn.f32 q0, q0\n"
      "vadd.f32 q0, q0, %[zero]\n"
      // What is no number becomes the lower limit.
      "vmaxnm.f32 q0, q0, q1\n"
      "vminnm.f32 q0, q0, q2\n"
      "vcvt.s32.f32 q0, q0\n"
      "vstrb.32 q0, [%[to]], #4\n"
      "letp lr, 1b\n"
      "2:\n"
      : [from] "+r"(from), [to] "+l"(to)
      : [count] "r"(count), [inverse] "r"(affine.inverse),
        [zero] "r"(affine.zero_point), [low] "r"(affine.low),
        [high] "r"(affine.high)
      : "lr", "q0", "q1", "q2", "cc", "memory");
}

/// Turns `count` items into floats.
inline void dequantize_vectors(const int8_t* from, float* to, int32_t count,
                               int32_t zero_point, float scale) {
  asm volatile(
      "wlstp.32 lr, %[count], 2f\n"
      "1:\n"
      "vldrb.s32 q0, [%[from]], #4\n"
      "vsub.i32 q0, q0, %[zero]\n"
      "vcvt.f32.s32 q0, q0\n"
      "vmul.f32 q0, q0, %[scale]\n"
      "vstrw.32 q0, [%[to]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [from] "+l"(from), [to] "+r"(to)
      : [count] "r"(count), [zero] "r"(zero_point), [scale] "r"(scale)
      : "lr", "q0", "cc", "memory");
}
#endif

using AffineFn = void (*)(const AffineRow& row, const Affine& affine);

/// A whole number as T, or the limit that it is beyond; NaN gives the lower
/// one.
template <typename T>
int32_t limited(float value, const Affine& affine) {
  if constexpr (sizeof(T) < sizeof(int32_t)) {
    if (value >= static_cast<float>(affine.high)) return affine.high;
    if (!(value > static_cast<float>(affine.low))) return affine.low;
    return static_cast<int32_t>(value);
  } else {
    // Limits of more than 24 bits are not always floats.
    int32_t number = INT32_MIN;
    if (value >= 0x1p31F) {
      number = INT32_MAX;
    } else if (value > -0x1p31F) {
      number = static_cast<int32_t>(value);
    }
    if (number < affine.low) return affine.low;
    return number > affine.high ? affine.high : number;
  }
}

/// Whether floats are as well limited before they are rounded: numbers of at
/// most 16 bits, with limits and zero point so near 0.
inline bool suits_near(const Affine& affine) {
  constexpr int32_t kMostZeroPoint = 1 << 21;  // of either sign
  return affine.zero_point >= -kMostZeroPoint &&
         affine.zero_point <= kMostZeroPoint;
}

inline NearAffine near_affine(const Affine& affine) {
  return {
      1.0F / affine.scale, static_cast<float>(affine.low - affine.zero_point),
      static_cast<float>(affine.high - affine.zero_point), affine.zero_point};
}

/// Floats of this size have steps of 1.
constexpr float kWhole = 0x1.8p23F;
/// Its bits.
constexpr uint32_t kWholeBits = 0x4B400000U;

/// The number for a float that was multiplied by `inverse`: the sum with a
/// float whose steps are 1 rounds it, and its lower bits are the number.
inline uint32_t to_quantized(float value, const NearAffine& affine) {
  value = value > affine.low ? value : affine.low;  // so is what is no number
  value = value < affine.high ? value : affine.high;
  value += kWhole;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits + (static_cast<uint32_t>(affine.zero_point) - kWholeBits);
}

/// Quantizes floats side by side. Trusts `suits_near`.
template <typename To>
ORCH_ALWAYS_INLINE void quantize_near(const float* from, To* to, int32_t count,
                                      const NearAffine& affine) {
  const NearAffine near = affine;  // what `to` points to cannot change it
  for (const To* const end = to + count; to != end; ++to) {
    *to = static_cast<To>(to_quantized(near.inverse * *from++, near));
  }
}

#if ORCH_ISA == ORCH_ISA_DSP && defined(__ARM_FP)
#define ORCH_QUANTIZE_FOUR 1
/// Quantizes the first floats, four at a time, to all that int8 can be, and
/// returns how many: 0 if one of them is no number. Then nothing that it wrote
/// counts. Trusts `suits_near`.
///
/// As `to_quantized`, but numbers are limited last, by instructions that
/// saturate: bits of floats are ordered as floats are, but for the sign.
ORCH_HOT inline int32_t quantize_four(const float* from, int8_t* to,
                                      int32_t count, const NearAffine& affine) {
  const int32_t items = count & ~3;
  if (items == 0) return 0;
  const int8_t* const end = to + items;
  float sum = 0;  // is no number if one of them is none
  asm volatile(
      "1:\n"
      "vldmia %[from]!, {s0-s3}\n"
      "vmul.f32 s0, s0, %[inverse]\n"
      "vmul.f32 s1, s1, %[inverse]\n"
      "vmul.f32 s2, s2, %[inverse]\n"
      "vmul.f32 s3, s3, %[inverse]\n"
      "vadd.f32 %[sum], %[sum], s0\n"
      "vadd.f32 %[sum], %[sum], s1\n"
      "vadd.f32 %[sum], %[sum], s2\n"
      "vadd.f32 %[sum], %[sum], s3\n"
      "vadd.f32 s0, s0, %[whole]\n"
      "vadd.f32 s1, s1, %[whole]\n"
      "vadd.f32 s2, s2, %[whole]\n"
      "vadd.f32 s3, s3, %[whole]\n"
      "vmov r4, r5, s0, s1\n"
      "vmov r6, r8, s2, s3\n"
      "qadd r4, r4, %[zero]\n"
      "qadd r5, r5, %[zero]\n"
      "qadd r6, r6, %[zero]\n"
      "qadd r8, r8, %[zero]\n"
      "ssat r4, #8, r4\n"
      "ssat r5, #8, r5\n"
      "ssat r6, #8, r6\n"
      "ssat r8, #8, r8\n"
      "strb r4, [%[to]], #1\n"
      "strb r5, [%[to]], #1\n"
      "strb r6, [%[to]], #1\n"
      "strb r8, [%[to]], #1\n"
      "cmp %[to], %[end]\n"
      "bne 1b\n"
      : [from] "+r"(from), [to] "+r"(to), [sum] "+t"(sum)
      : [end] "r"(end), [inverse] "t"(affine.inverse), [whole] "t"(kWhole),
        [zero] "r"(static_cast<uint32_t>(affine.zero_point) - kWholeBits)
      : "r4", "r5", "r6", "r8", "s0", "s1", "s2", "s3", "cc", "memory");
  return sum == sum ? items : 0;
}
#else
#define ORCH_QUANTIZE_FOUR 0
#endif

/// Quantizes floats side by side, as fast as limits allow. Trusts `suits_near`.
template <typename To>
ORCH_ALWAYS_INLINE void quantize_side_by_side(const float* from, To* to,
                                              int32_t count,
                                              const NearAffine& affine) {
  int32_t done = 0;
#if ORCH_QUANTIZE_FOUR
  if constexpr (kIsSame<To, int8_t>) {
    if (affine.high - affine.low == float{UINT8_MAX}) {
      done = quantize_four(from, to, count, affine);
    }
  }
#endif
  quantize_near(from + done, to + done, count - done, affine);
}

/// The same, kept out of the function that chooses it.
template <typename To>
ORCH_HOT void quantize_side_by_side(const float* from, To* to, int32_t count,
                                    const Affine& affine) {
  quantize_side_by_side(from, to, count, near_affine(affine));
}

/// Quantizes a row of floats if they lie side by side and their parameters are
/// as usual. False: nothing is done.
template <typename To>
ORCH_ALWAYS_INLINE bool quantize_fast(const float* from, To* to,
                                      const AffineRow& row,
                                      const Affine& affine) {
  if (row.from_step != 1 || row.to_step != 1) return false;
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<To, int8_t>) {
    if (!suits_vectors(affine)) return false;
    quantize_vectors(from, to, row.count, vector_affine(affine));
    return true;
  }
#endif
  if (!suits_near(affine)) return false;
  quantize_side_by_side(from, to, row.count, affine);
  return true;
}

/// Quantizes a row.
template <typename From, typename To>
ORCH_HOT void quantize_row(const AffineRow& row, const Affine& affine) {
  using C = Compute<From>;
  const From* from = static_cast<const From*>(row.from);
  To* to = static_cast<To*>(row.to);
  if constexpr (kIsSame<From, float> && sizeof(To) < sizeof(int32_t)) {
    if (quantize_fast(from, to, row, affine)) return;
  }
  const float inverse = 1.0F / affine.scale;
  const float zero_point = static_cast<float>(affine.zero_point);
  const Affine limits = affine;  // what `to` points to cannot change it
  for (int32_t left = row.count; left > 0; --left) {
    const C scaled = static_cast<C>(inverse) * static_cast<C>(*from);
    const float value = round_even(static_cast<float>(scaled)) + zero_point;
    *to = static_cast<To>(limited<To>(value, limits));
    from += row.from_step;
    to += row.to_step;
  }
}

/// Turns quantized numbers to floats, items side by side or with other steps:
/// the difference to the zero point is exact, as long as 32 bits hold it, the
/// product is rounded to a float. kSideBySide: all steps are 1.
template <typename From, typename To, bool kSideBySide = false>
ORCH_ALWAYS_INLINE void dequantize_items(const AffineRow& row,
                                         int32_t zero_point, float scale) {
  const From* from = static_cast<const From*>(row.from);
  To* to = static_cast<To*>(row.to);
  const auto convert = [&](From item) {
    const uint32_t number =
        static_cast<uint32_t>(item) - static_cast<uint32_t>(zero_point);
    const float value = static_cast<float>(static_cast<int32_t>(number));
    return static_cast<To>(value * scale);
  };
  if (kSideBySide || (kFavourSpeed && row.from_step == 1 && row.to_step == 1)) {
    for (To* const end = to + row.count; to != end; ++to) {
      *to = convert(*from++);
    }
    return;
  }
  for (int32_t left = row.count; left > 0; --left) {
    *to = convert(*from);
    from += row.from_step;
    to += row.to_step;
  }
}

/// Turns a row of quantized numbers to floats.
template <typename From, typename To, bool kSideBySide = false>
ORCH_HOT void dequantize_row(const AffineRow& row, const Affine& affine) {
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<From, int8_t> && kIsSame<To, float>) {
    if (row.from_step == 1 && row.to_step == 1 && suits_vectors(affine)) {
      dequantize_vectors(static_cast<const From*>(row.from),
                         static_cast<To*>(row.to), row.count, affine.zero_point,
                         affine.scale);
      return;
    }
  }
#endif
  dequantize_items<From, To, kSideBySide>(row, affine.zero_point, affine.scale);
}

/// Prepared: what `quantize_row` and `dequantize_row` do with items side by
/// side.
template <typename To>
ORCH_HOT void quantize_near_items(const PreparedCall& prepared) {
  const auto& call = static_cast<const QuantizeNearCall&>(prepared);
  quantize_side_by_side(static_cast<const float*>(call.input),
                        static_cast<To*>(call.out), call.count, call.affine);
}

template <typename From>
void dequantize_all(const PreparedCall& prepared) {
  const auto& call = static_cast<const DequantizeCall&>(prepared);
  dequantize_items<From, float, true>({call.input, call.out, 1, 1, call.count},
                                      call.zero_point, call.scale);
}

#if ORCH_FLOAT_VECTORS
inline void quantize_vector_items(const PreparedCall& prepared) {
  const auto& call = static_cast<const QuantizeVectorsCall&>(prepared);
  quantize_vectors(static_cast<const float*>(call.input),
                   static_cast<int8_t*>(call.out), call.count, call.affine);
}

inline void dequantize_vector_items(const PreparedCall& prepared) {
  const auto& call = static_cast<const DequantizeCall&>(prepared);
  dequantize_vectors(static_cast<const int8_t*>(call.input),
                     static_cast<float*>(call.out), call.count, call.zero_point,
                     call.scale);
}
#endif

/// The row function for dtypes of this set. Errors: InvalidArgument (no floats,
/// or no dtype to quantize to), DtypeNotSelected.
template <uint32_t kBits>
Error find_quantize(ScalarType from, ScalarType to, AffineFn& fn) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kFloating.has(from) && kQuantized.has(to), Error::InvalidArgument);
  return switch_dtype<(kDtypes & kFloating).bits>(from, [&](auto in) {
    return switch_dtype<(kDtypes & kQuantized).bits>(to, [&](auto out) {
      fn = quantize_row<typename decltype(in)::type,
                        typename decltype(out)::type>;
      return Error::Ok;
    });
  });
}

/// The way back.
template <uint32_t kBits>
Error find_dequantize(ScalarType from, ScalarType to, AffineFn& fn) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kQuantized.has(from) && kFloating.has(to), Error::InvalidArgument);
  return switch_dtype<(kDtypes & kQuantized).bits>(from, [&](auto in) {
    return switch_dtype<(kDtypes & kFloating).bits>(to, [&](auto out) {
      fn = dequantize_row<typename decltype(in)::type,
                          typename decltype(out)::type>;
      return Error::Ok;
    });
  });
}

/// Whether quantized numbers of `dtype` can have these limits. Errors:
/// InvalidArgument; NotSupported (they are the wrong way round, where PyTorch
/// gives `high` for everything).
__attribute__((noinline)) inline Error read_limits(int64_t low, int64_t high,
                                                   ScalarType dtype,
                                                   Affine& affine) {
  ORCH_CHECK(kQuantized.has(dtype), Error::InvalidArgument);
  const int unused = 32 - static_cast<int>(8 * item_bytes(dtype));
  const bool is_signed =
      dtype != ScalarType::Byte && dtype != ScalarType::UInt16;
  const int32_t lowest = is_signed ? INT32_MIN >> unused : 0;
  const int32_t highest =
      static_cast<int32_t>((is_signed ? INT32_MAX : UINT32_MAX) >> unused);
  affine.low = static_cast<int32_t>(low);
  affine.high = static_cast<int32_t>(high);
  ORCH_CHECK(affine.low == low && affine.high == high && affine.low >= lowest &&
                 affine.high <= highest,
             Error::InvalidArgument);
  ORCH_CHECK(low <= high, Error::NotSupported);
  return Error::Ok;
}

/// A zero point among the arguments. Errors: InvalidArgument (not 32 bits).
inline Error read_zero_point(int64_t value, Affine& affine) {
  affine.zero_point = static_cast<int32_t>(value);
  ORCH_CHECK(affine.zero_point == value, Error::InvalidArgument);
  return Error::Ok;
}

/// Reads arguments 1 to 5, `float scale, int zero_point, int quant_min,
/// int quant_max, ScalarType dtype`, for a tensor of the quantized dtype
/// `dtype`. Errors: InvalidArgument, NotSupported.
__attribute__((noinline)) inline Error read_affine(const Args& args,
                                                   ScalarType dtype,
                                                   Affine& affine) {
  ORCH_CHECK(args.integer(5) == static_cast<int>(dtype),
             Error::InvalidArgument);
  affine.scale = static_cast<float>(args.real(1));
  ORCH_TRY(read_zero_point(args.integer(2), affine));
  return read_limits(args.integer(3), args.integer(4), dtype, affine);
}

/// Tensors of scales and zero points, the latter may be null.
struct AffineTensors {
  const Tensor* scales;       // Float or Double
  const Tensor* zero_points;  // Int or Long

  /// Errors: InvalidArgument.
  __attribute__((noinline)) Error check() const {
    ORCH_CHECK(scales->dtype == ScalarType::Float ||
                   scales->dtype == ScalarType::Double,
               Error::InvalidArgument);
    ORCH_CHECK(zero_points == nullptr ||
                   zero_points->dtype == ScalarType::Int ||
                   zero_points->dtype == ScalarType::Long,
               Error::InvalidArgument);
    return Error::Ok;
  }

  /// Sets scale and zero point. Of zero points that have more than 32 bits the
  /// upper ones are dropped.
  __attribute__((noinline)) void load(int32_t item, Affine& affine) const {
    affine.scale = scales->dtype == ScalarType::Float
                       ? scales->data<float>()[item]
                       : static_cast<float>(scales->data<double>()[item]);
    affine.zero_point = 0;
    if (zero_points == nullptr) return;
    affine.zero_point =
        zero_points->dtype == ScalarType::Int
            ? zero_points->data<int32_t>()[item]
            : static_cast<int32_t>(zero_points->data<int64_t>()[item]);
  }
};

/// Checks parameters per index of a dimension of `input` and gives its index.
/// Errors: InvalidArgument.
__attribute__((noinline)) inline Error check_channels(
    const AffineTensors& tensors, const Tensor& input, int64_t dim, int& axis) {
  ORCH_CHECK(input.dim > 0, Error::InvalidArgument);
  ORCH_TRY(tensors.check());
  ORCH_TRY(read_dim(dim, input.dim, axis));
  const int32_t count = input.size(axis);
  ORCH_CHECK(tensors.scales->dim == 1 && tensors.scales->size(0) == count,
             Error::InvalidArgument);
  const Tensor* const zero_points = tensors.zero_points;
  ORCH_CHECK(zero_points == nullptr ||
                 (zero_points->dim == 1 && zero_points->size(0) == count),
             Error::InvalidArgument);
  return Error::Ok;
}

/// Checks parameters per index of all dimensions of `input` but the last, in
/// which they have size 1. Errors: InvalidArgument; NotSupported (scales and
/// zero points are laid out differently).
__attribute__((noinline)) inline Error check_tokens(
    const AffineTensors& tensors, const Tensor& input) {
  const Tensor& scales = *tensors.scales;
  ORCH_CHECK(input.dim > 0 && scales.dim == input.dim, Error::InvalidArgument);
  ORCH_TRY(tensors.check());
  for (int i = 0; i < input.dim; ++i) {
    const int32_t count = i == input.dim - 1 ? 1 : input.size(i);
    ORCH_CHECK(scales.size(i) == count, Error::InvalidArgument);
  }
  ORCH_CHECK(same_sizes(scales, *tensors.zero_points), Error::InvalidArgument);
  ORCH_CHECK(same_layout(scales, *tensors.zero_points), Error::NotSupported);
  return Error::Ok;
}

/// Calls fn for all items of `from` and `to`, which have the same sizes. In the
/// loop tensor 0 is `to`, tensor 1 `from`.
__attribute__((noinline)) inline void for_each_row(StridedLoop& loop,
                                                   const Tensor& from,
                                                   const Tensor& to,
                                                   const Affine& affine,
                                                   AffineFn fn) {
  const char* in = from.data<char>();
  char* out = to.mutable_data<char>();
  const int32_t in_bytes = static_cast<int32_t>(item_bytes(from.dtype));
  const int32_t out_bytes = static_cast<int32_t>(item_bytes(to.dtype));
  for (; loop.valid(); loop.next()) {
    fn({in + loop.offset(1) * in_bytes, out + loop.offset(0) * out_bytes,
        loop.row_stride(1), loop.row_stride(0), loop.row_size()},
       affine);
  }
}

/// The same with parameters from tensors; tensor 2 of the loop is the item of
/// the parameters.
__attribute__((noinline)) inline void for_each_row(StridedLoop& loop,
                                                   const Tensor& from,
                                                   const Tensor& to,
                                                   const AffineTensors& tensors,
                                                   Affine affine, AffineFn fn) {
  const char* in = from.data<char>();
  char* out = to.mutable_data<char>();
  const int32_t in_bytes = static_cast<int32_t>(item_bytes(from.dtype));
  const int32_t out_bytes = static_cast<int32_t>(item_bytes(to.dtype));
  for (; loop.valid(); loop.next()) {
    // One call per row where it shares its parameters, else one per item.
    const int32_t step = loop.row_stride(2);
    const int32_t count = step == 0 ? loop.row_size() : 1;
    for (int32_t i = 0; i < loop.row_size(); i += count) {
      tensors.load(loop.offset(2) + i * step, affine);
      const int32_t at_in = loop.offset(1) + i * loop.row_stride(1);
      const int32_t at_out = loop.offset(0) + i * loop.row_stride(0);
      fn({in + at_in * in_bytes, out + at_out * out_bytes, loop.row_stride(1),
          loop.row_stride(0), count},
         affine);
    }
  }
}

/// A loop with one item of parameters per index of dimension `axis`. `from`
/// and `to` have the same sizes.
__attribute__((noinline)) inline StridedLoop loop_by_channel(const Tensor& to,
                                                             const Tensor& from,
                                                             int axis) {
  const Strides to_strides(to);
  const Strides from_strides(from);
  StridedLoop loop;
  for (int i = 0; i < to.dim; ++i) {
    const int d = to.order()[i];
    loop.add(to.size(d), to_strides[d], from_strides[d], d == axis ? 1 : 0);
  }
  return loop;
}

/// A loop with one item of parameters per index of all dimensions but the last:
/// those of `scales`, whose last size is 1.
__attribute__((noinline)) inline StridedLoop loop_by_token(
    const Tensor& to, const Tensor& from, const Tensor& scales) {
  const Strides to_strides(to);
  const Strides from_strides(from);
  const Strides scale_strides(scales);
  StridedLoop loop;
  for (int i = 0; i < to.dim; ++i) {
    const int d = to.order()[i];
    loop.add(to.size(d), to_strides[d], from_strides[d],
             d == to.dim - 1 ? 0 : scale_strides[d]);
  }
  return loop;
}

}  // namespace orch
