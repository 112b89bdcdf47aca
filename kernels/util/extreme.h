// The largest or smallest of many items.
#pragma once

#include "orch/value.h"
#include "util/check.h"
#include "util/dot_mve.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/promote.h"
#include "util/reduce.h"

namespace orch {

/// Whether `a` comes before `b` if the smallest, or else the largest, comes
/// first; NaN before all. Not of equal ones.
template <bool kSmallest, typename W>
bool is_beyond(W a, W b) {
  // The usual case takes one comparison.
  if (kSmallest ? a >= b : a <= b) return false;
  return (kSmallest ? a < b : a > b) || (is_nan(a) && !is_nan(b));
}

#if ORCH_FLOAT_VECTORS

/// What VectorExtreme says of the first items of a row.
struct VectorExtreme {
  int32_t count = 0;  // of these items; 0 if vectors cannot tell
  float value = 0;    // for 0, whichever is found
};

/// The extreme of as many groups of four items as there are, which hold no
/// subnormal number.
template <bool kSmallest>
__attribute__((noinline)) VectorExtreme extreme_of_vectors(const float* items,
                                                           int32_t count) {
  int32_t groups = count / 4 - 1;
  if (groups < 1) return {};
  const FlushFlags flags;
  float lanes[4];
  int32_t flushed;
  // "gt" is false of NaN, which stays once it is found.
#define ORCH_EXTREME(a, b)                           \
  asm volatile(                                      \
      "vldrw.32 q0, [%[items]], #16\n"               \
      "dls lr, %[groups]\n"                          \
      "1:\n"                                         \
      "vldrw.32 q1, [%[items]], #16\n"               \
      "vpt.f32 gt, " a ", " b                        \
      "\n"                                           \
      "vmovt q0, q1\n"                               \
      "vpt.f32 ne, q1, q1\n"                         \
      "vmovt q0, q1\n"                               \
      "le lr, 1b\n"                                  \
      "vstrw.32 q0, [%[lanes]]\n"                    \
      "vmrs %[flushed], fpscr\n"                     \
      "and %[flushed], %[flushed], #0x88\n"          \
      : [items] "+r"(items), [flushed] "=r"(flushed) \
      : [groups] "r"(groups), [lanes] "r"(lanes)     \
      : "lr", "q0", "q1", "memory")
  if constexpr (kSmallest) {
    ORCH_EXTREME("q0", "q1");
  } else {
    ORCH_EXTREME("q1", "q0");
  }
#undef ORCH_EXTREME
  if (flushed != 0) return {};
  float best = lanes[0];
  for (int i = 1; i < 4; ++i) {
    if (is_beyond<kSmallest>(lanes[i], best)) best = lanes[i];
  }
  return {(groups + 1) * 4, best};
}

/// Index of the first of `count` items, a multiple of four, that equals
/// `value`; there is one, and no subnormal number. Without one: count.
__attribute__((noinline)) inline int32_t find_in_vectors(const float* items,
                                                         int32_t count,
                                                         float value) {
  const float* item = items;
  int32_t found;
  asm volatile(
      "dls lr, %[groups]\n"
      "1:\n"
      "vldrw.32 q0, [%[item]], #16\n"
      "vcmp.f32 eq, q0, %[value]\n"
      "vmrs %[found], p0\n"
      "cbnz %[found], 2f\n"
      "le lr, 1b\n"
      "2:\n"
      : [item] "+r"(item), [found] "=&l"(found)
      : [groups] "r"(count / 4), [value] "r"(value)
      : "lr", "q0", "cc", "memory");
  if (found == 0) return count - 1;
  // Four bits for each lane.
  return static_cast<int32_t>(item - items) - 4 +
         __builtin_ctz(static_cast<unsigned>(found)) / 4;
}

#endif

/// The extreme of a line so far, and its number; NaN is beyond all, and the
/// first of equal ones stays.
template <bool kSmallest, typename T>
struct Extreme {
  using W = typename Choose<kIsHalf<T>, float, T>::type;
  W best;
  int32_t number = 0;
  int32_t next = 0;  // number of the next item

  explicit Extreme(T first) : best(static_cast<W>(first)) {}

  /// Takes `count` items of a row.
  ORCH_HOT void take(const T* item, int32_t step, int32_t count) {
#if ORCH_FLOAT_VECTORS
    if constexpr (kIsSame<T, float>) {
      if (step == 1) {
        const VectorExtreme found = extreme_of_vectors<kSmallest>(item, count);
        if (is_beyond<kSmallest>(found.value, best) && found.count != 0) {
          int32_t at = 0;
          if (is_nan(found.value)) {
            while (at < found.count - 1 && !is_nan(item[at])) ++at;
          } else {
            at = find_in_vectors(item, found.count, found.value);
          }
          best = item[at];
          number = next + at;
        }
        item += found.count;
        next += found.count;
        count -= found.count;
      }
    }
#endif
    W beyond = best;
    for (int32_t left = count; left > 0; --left) {
      const W value = static_cast<W>(*item);
      if (is_beyond<kSmallest>(value, beyond)) {
        beyond = value;
        number = next + (count - left);
      }
      item += step;
    }
    best = beyond;
    next += count;
  }
};

/// The smallest, or else the largest, item of a loop over tensor 0. There is an
/// item.
template <bool kSmallest, typename T>
Extreme<kSmallest, T> extreme_of(const T* items, StridedLoop& loop) {
  Extreme<kSmallest, T> found(items[0]);
  for (; loop.valid(); loop.next()) {
    found.take(items + loop.offset(0), loop.row_stride(0), loop.row_size());
  }
  return found;
}

/// aten::argmin.out, aten::argmax.out(Tensor self, int? dim=None,
///   bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)
///
/// Without `dim`, the index into the flattened tensor. kBits: dtypes of `self`.
template <uint32_t kBits, bool kSmallest>
Error find_extreme(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(out.dtype == ScalarType::Long, Error::InvalidArgument);
  unsigned dims = (1U << self.dim) - 1;
  if (args.has(1)) {
    int dim = 0;
    ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
    dims &= 1U << dim;
  }
  ORCH_CHECK(has_items(self, dims), Error::InvalidArgument);
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, args.boolean(2), out, reduction));
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    each_result(reduction, [&](int32_t to, int32_t from, int32_t) {
      out.mutable_data<int64_t>()[to] =
          extreme_of<kSmallest>(self.data<T>() + from, reduction.items).number;
    });
    return Error::Ok;
  });
}

/// aten::min.dim_min, aten::max.dim_max, see pick_along.
template <uint32_t kBits, bool kSmallest>
Error extremes_along(const Args& args) {
  return pick_along<kBits>(args, [](auto* from, StridedLoop& line) {
    return extreme_of<kSmallest>(from, line).number;
  });
}

/// aten::amin.out, aten::amax.out(Tensor self, int[1] dim=[],
///   bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)
///
/// kBits: dtypes of `self`.
template <uint32_t kBits, bool kSmallest>
Error extremes(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  unsigned dims = 0;
  ORCH_CHECK(out.dtype == self.dtype, Error::InvalidArgument);
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  ORCH_CHECK(has_items(self, dims), Error::InvalidArgument);
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, args.boolean(2), out, reduction));
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    each_result(reduction, [&](int32_t to, int32_t first, int32_t) {
      out.mutable_data<T>()[to] = static_cast<T>(
          extreme_of<kSmallest>(self.data<T>() + first, reduction.items).best);
    });
    return Error::Ok;
  });
}

/// The smallest, or else the largest, of items side by side, the last of equal
/// ones; NaN wins. Without items, what every item is beyond.
template <bool kSmallest, typename T>
ORCH_HOT auto extreme_of_all(const T* item, int32_t count) {
  using N = decltype(number_of(T()));
  N best = kSmallest ? highest<N>() : lowest<N>();
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<T, float>) {
    const VectorExtreme found = extreme_of_vectors<kSmallest>(item, count);
    // Zeros have two signs.
    if (found.count != 0 && found.value != 0) {
      best = found.value;
      item += found.count;
      count -= found.count;
      if (is_nan(best)) return best;
    }
  }
#endif
  for (; count > 0; --count) {
    const N x = number_of(*item++);
    if (kSmallest ? best < x : best > x) continue;
    best = x;
    if (is_nan(x)) break;
  }
  return best;
}

/// aten::min.unary_out, aten::max.unary_out(Tensor self, *, Tensor(a!) out)
///   -> Tensor(a!)
///
/// kIn: dtypes of `self`; kOut: of `out`. Errors: InvalidArgument,
/// ShapeTooLarge, DtypeNotSelected.
template <uint32_t kIn, uint32_t kOut, bool kSmallest>
Error extreme_item(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  ORCH_CHECK(can_cast(self.dtype, out.dtype), Error::InvalidArgument);
  ORCH_CHECK(DtypeSet{kOut}.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY(resize_output(out, {}, self));
  return switch_dtype<kIn>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
    // In memory order: which of equal items is found shows in no bit, but for
    // zeros of both signs.
    store_as<castable_to(DtypeSet{kOut}, kT).bits>(
        out.dtype, out.memory, 0,
        extreme_of_all<kSmallest>(self.data<T>(), self.numel()));
    return Error::Ok;
  });
}

}  // namespace orch
