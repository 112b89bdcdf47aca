// Sums of many items, in one order on every target.
#pragma once

#include <stdint.h>

#include "util/dot_mve.h"
#include "util/isa.h"
#include "util/strided_loop.h"
#include "util/types.h"

namespace orch {

/// A sum in four parts, which take turns: processors add to all at once, and
/// rounding errors are smaller than those of one sum.
template <typename C>
struct Parts {
  /// The next item goes to the first.
  C a = C(0);
  C b = C(0);
  C c = C(0);
  C d = C(0);

  C total() const { return (a + b) + (c + d); }
  void add(C item) {
    const C sum = a + item;
    a = b;
    b = c;
    c = d;
    d = sum;
  }
};

#if ORCH_FLOAT_VECTORS

/// Adds as many groups of four items as there are, or none: where vectors would
/// take a subnormal number for 0. Returns the number of items.
__attribute__((noinline)) inline int32_t add_vectors(Parts<float>& sum,
                                                     const float* items,
                                                     int32_t count) {
  int32_t groups = count / 4;
  if (groups == 0) return 0;
  const FlushFlags flags;
  int32_t flushed;
  asm volatile(
      "vldrw.32 q0, [%[sum]]\n"
      "dls lr, %[groups]\n"
      "1:\n"
      "vldrw.32 q1, [%[items]], #16\n"
      "vadd.f32 q0, q0, q1\n"
      "le lr, 1b\n"
      "vmrs %[flushed], fpscr\n"
      "ands %[flushed], %[flushed], #0x88\n"
      "bne 2f\n"
      "vstrw.32 q0, [%[sum]]\n"
      "2:\n"
      : [items] "+r"(items), [flushed] "=&r"(flushed)
      : [sum] "r"(&sum), [groups] "r"(groups)
      : "lr", "q0", "q1", "cc", "memory");
  if (flushed != 0) return 0;
  return groups * 4;
}

/// The same for the distances of items from `mean`, and their squares.
__attribute__((noinline)) inline int32_t add_vectors_apart(
    Parts<float>& rest, Parts<float>& squares, const float* items,
    int32_t count, float mean) {
  int32_t groups = count / 4;
  if (groups == 0) return 0;
  const FlushFlags flags;
  int32_t flushed;
  asm volatile(
      "vldrw.32 q0, [%[rest]]\n"
      "vldrw.32 q2, [%[squares]]\n"
      "dls lr, %[groups]\n"
      "1:\n"
      "vldrw.32 q1, [%[items]], #16\n"
      "vsub.f32 q1, q1, %[mean]\n"
      "vadd.f32 q0, q0, q1\n"
      "vmul.f32 q1, q1, q1\n"
      "vadd.f32 q2, q2, q1\n"
      "le lr, 1b\n"
      "vmrs %[flushed], fpscr\n"
      "ands %[flushed], %[flushed], #0x88\n"
      "bne 2f\n"
      "vstrw.32 q0, [%[rest]]\n"
      "vstrw.32 q2, [%[squares]]\n"
      "2:\n"
      : [items] "+r"(items), [flushed] "=&r"(flushed)
      : [rest] "r"(&rest), [squares] "r"(&squares), [groups] "r"(groups),
        [mean] "r"(mean)
      : "lr", "q0", "q1", "q2", "cc", "memory");
  if (flushed != 0) return 0;
  return groups * 4;
}

#endif

/// Whether rows of what Load loads can be summed by vectors.
template <typename Load>
inline constexpr bool kSumsVectors =
    ORCH_FLOAT_VECTORS != 0 && kIsSame<Load, ItemsOf<float>>;

/// The sum of load(i) for each item of a loop over tensor 0.
template <typename C, typename Load>
ORCH_HOT C sum_of_items(Load load, StridedLoop& loop) {
  Parts<C> sum;
  for (; loop.valid(); loop.next()) {
    int32_t at = loop.offset(0);
    const int32_t step = loop.row_stride(0);
    int32_t left = loop.row_size();
    if constexpr (kSumsVectors<Load>) {
      if (step == 1) {
        const int32_t done = add_vectors(sum, load.items + at, left);
        at += done;
        left -= done;
      }
    }
    Parts<C> parts = sum;
    for (; left >= 4; left -= 4) {
      parts.a += load(at);
      parts.b += load(at + step);
      parts.c += load(at + 2 * step);
      parts.d += load(at + 3 * step);
      at += 4 * step;
    }
    for (; left > 0; --left) {
      parts.add(load(at));
      at += step;
    }
    sum = parts;
  }
  return sum.total();
}

}  // namespace orch
