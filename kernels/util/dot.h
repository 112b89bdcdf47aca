// Sums of products: the inner loop of convolution and matrix product.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "util/isa.h"
#include "util/types.h"

namespace orch {

/// Three nested loops over the products of one sum, outermost first.
struct DotLoops {
  int32_t count[3];
  int32_t x_step[3];  // to the next turn, in items of the factor x
  int32_t w_step[3];

  /// What dot1 and dot4 want: steps of the outer loops count from where the
  /// inner ones end, and the outermost count is 0 if any is.
  DotLoops relative() const {
    DotLoops loops = *this;
    loops.make_relative();
    return loops;
  }

  void make_relative() {
    for (int i = 0; i < 2; ++i) {
      x_step[i] -= count[i + 1] * x_step[i + 1];
      w_step[i] -= count[i + 1] * w_step[i + 1];
      if (count[i + 1] == 0) count[0] = 0;
    }
  }
};

/// Sums that are computed side by side, where so many are left.
inline constexpr int kDotBlock = 4;

/// Where a sum starts: `start` is added to first, unless it is null. In a
/// block, the next sum has the next start and factors x_next and w_next further
/// on; an x_next of 0 means that all share x.
template <typename T>
struct Dot {
  const T* x;
  const T* w;
  const T* start;
  int32_t x_next;
  int32_t w_next;
};

/// Hides from the compiler how a pointer was computed. It would keep pointers
/// that move in step as one index and add them up again in every turn, or load
/// everything before the loops and then run out of registers.
template <typename T>
void keep_apart(const T*& pointer) {
  asm("" : "+r"(pointer));
}

/// One sum. The loops are relative.
template <typename T>
__attribute__((noinline)) void dot1(const Dot<T>& dot, const DotLoops* loops,
                                    Compute<T>* sums) {
  using C = Compute<T>;
  C sum = 0;
  if (dot.start != nullptr) sum = static_cast<C>(*dot.start);
  const T* x = dot.x;
  const T* w = dot.w;
  for (int32_t i = loops->count[0]; i != 0; --i) {
    int32_t j = loops->count[1];
    do {
      const int32_t x_step = loops->x_step[2];
      const int32_t w_step = loops->w_step[2];
      int32_t k = loops->count[2];
      do {
        sum += static_cast<C>(*x) * static_cast<C>(*w);
        x += x_step;
        w += w_step;
        keep_apart(x);
        keep_apart(w);
      } while (--k != 0);
      keep_apart(loops);
      x += loops->x_step[1];
      w += loops->w_step[1];
    } while (--j != 0);
    x += loops->x_step[0];
    w += loops->w_step[0];
  }
  sums[0] = sum;
}

/// kDotBlock sums. The loops are relative.
template <typename T, bool kSharedX>
__attribute__((noinline)) void dot4(const Dot<T>& dot, const DotLoops* loops,
                                    Compute<T>* sums) {
  using C = Compute<T>;
  C sum0 = 0;
  C sum1 = 0;
  C sum2 = 0;
  C sum3 = 0;
  if (dot.start != nullptr) {
    sum0 = static_cast<C>(dot.start[0]);
    sum1 = static_cast<C>(dot.start[1]);
    sum2 = static_cast<C>(dot.start[2]);
    sum3 = static_cast<C>(dot.start[3]);
  }
  const T* x = dot.x;
  const int32_t x_next = dot.x_next;
  const T* w0 = dot.w;
  const T* w1 = w0 + dot.w_next;
  const T* w2 = w1 + dot.w_next;
  const T* w3 = w2 + dot.w_next;
  for (int32_t i = loops->count[0]; i != 0; --i) {
    int32_t j = loops->count[1];
    do {
      const int32_t x_step = loops->x_step[2];
      const int32_t w_step = loops->w_step[2];
      int32_t k = loops->count[2];
      do {
        if constexpr (kSharedX) {
          const C value = static_cast<C>(*x);
          sum0 += value * static_cast<C>(*w0);
          sum1 += value * static_cast<C>(*w1);
          sum2 += value * static_cast<C>(*w2);
          sum3 += value * static_cast<C>(*w3);
        } else {
          const T* item = x;
          sum0 += static_cast<C>(*item) * static_cast<C>(*w0);
          item += x_next;
          sum1 += static_cast<C>(*item) * static_cast<C>(*w1);
          item += x_next;
          sum2 += static_cast<C>(*item) * static_cast<C>(*w2);
          item += x_next;
          sum3 += static_cast<C>(*item) * static_cast<C>(*w3);
        }
        x += x_step;
        w0 += w_step;
        w1 += w_step;
        w2 += w_step;
        w3 += w_step;
        keep_apart(x);
        keep_apart(w0);
        keep_apart(w1);
        keep_apart(w2);
        keep_apart(w3);
      } while (--k != 0);
      keep_apart(loops);
      const int32_t w_row = loops->w_step[1];
      x += loops->x_step[1];
      w0 += w_row;
      w1 += w_row;
      w2 += w_row;
      w3 += w_row;
    } while (--j != 0);
    const int32_t w_plane = loops->w_step[0];
    x += loops->x_step[0];
    w0 += w_plane;
    w1 += w_plane;
    w2 += w_plane;
    w3 += w_plane;
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

/// How the factors w lie that the innermost loop reads.
enum class DotFactors : uint8_t {
  kAny,     // unknown
  kThrees,  // contiguous, mostly three of them
  kFours,   // contiguous, mostly a multiple of four
  kApart,   // not contiguous
  kBeside,  // not contiguous, but those of the four sums are neighbours
};

#if ORCH_FLOAT_REGISTERS

// Floats in an FPU's registers: compilers address each factor anew, and load
// neighbours one by one.
// clang-format off
#define ORCH_DOT_LOAD(item) \
  "vldr " item ", [%[x]]\n" \
  "add %[x], %[x], %[x_step]\n"
#define ORCH_DOT_PRODUCT(sum, item, factor) \
  "vmul.f32 " factor ", " item ", " factor "\n" \
  "vadd.f32 " sum ", " sum ", " factor "\n"
#define ORCH_DOT_THREE(w, sum) \
  "vldmia %[" w "]!, {s8-s10}\n" \
  ORCH_DOT_PRODUCT(sum, "s4", "s8") \
  ORCH_DOT_PRODUCT(sum, "s5", "s9") \
  ORCH_DOT_PRODUCT(sum, "s6", "s10")
#define ORCH_DOT_FOUR(w, sum) \
  "vldmia %[" w "]!, {s8-s11}\n" \
  ORCH_DOT_PRODUCT(sum, "s4", "s8") \
  ORCH_DOT_PRODUCT(sum, "s5", "s9") \
  ORCH_DOT_PRODUCT(sum, "s6", "s10") \
  ORCH_DOT_PRODUCT(sum, "s7", "s11")
// One product of each sum.
#define ORCH_DOT_ONES \
  "vmul.f32 s8, s4, s8\n" \
  "vmul.f32 s9, s4, s9\n" \
  "vmul.f32 s10, s4, s10\n" \
  "vmul.f32 s11, s4, s11\n" \
  "vadd.f32 s0, s0, s8\n" \
  "vadd.f32 s1, s1, s9\n" \
  "vadd.f32 s2, s2, s10\n" \
  "vadd.f32 s3, s3, s11\n" \
  "subs %[k], %[k], #1\n"
// A loop over products whose factors w are neighbours, as many in a turn; the
// others are left.
#define ORCH_DOT_NEAR(count, loads, block) \
  "subs %[k], %[k], #" count "\n" \
  "blt 4f\n" \
  "3:\n" \
  loads \
  block("w0", "s0") \
  block("w1", "s1") \
  block("w2", "s2") \
  block("w3", "s3") \
  "subs %[k], %[k], #" count "\n" \
  "bge 3b\n" \
  "4:\n" \
  "adds %[k], %[k], #" count "\n" \
  "beq 6f\n"
#define ORCH_DOT_LEFT \
  "8:\n" \
  ORCH_DOT_LOAD("s4") \
  "vldmia %[w0]!, {s8}\n" \
  "vldmia %[w1]!, {s9}\n" \
  "vldmia %[w2]!, {s10}\n" \
  "vldmia %[w3]!, {s11}\n" \
  ORCH_DOT_ONES \
  "bne 8b\n"
#define ORCH_DOT_THREES \
  ORCH_DOT_NEAR("3", ORCH_DOT_LOAD("s4") ORCH_DOT_LOAD("s5") \
                     ORCH_DOT_LOAD("s6"), ORCH_DOT_THREE)
#define ORCH_DOT_FOURS \
  ORCH_DOT_NEAR("4", ORCH_DOT_LOAD("s4") ORCH_DOT_LOAD("s5") \
                     ORCH_DOT_LOAD("s6") ORCH_DOT_LOAD("s7"), ORCH_DOT_FOUR)
// A loop over others.
#define ORCH_DOT_APART \
  "5:\n" \
  ORCH_DOT_LOAD("s4") \
  "vldr s8, [%[w0]]\n" \
  "add %[w0], %[w0], %[w_step]\n" \
  "vldr s9, [%[w1]]\n" \
  "add %[w1], %[w1], %[w_step]\n" \
  "vldr s10, [%[w2]]\n" \
  "add %[w2], %[w2], %[w_step]\n" \
  "vldr s11, [%[w3]]\n" \
  "add %[w3], %[w3], %[w_step]\n" \
  ORCH_DOT_ONES \
  "bne 5b\n"
#define ORCH_DOT_BESIDE \
  "5:\n" \
  ORCH_DOT_LOAD("s4") \
  "vldmia %[w0], {s8-s11}\n" \
  "add %[w0], %[w0], %[w_step]\n" \
  ORCH_DOT_ONES \
  "bne 5b\n"
#define ORCH_DOT_ANY \
  "cmp %[w_step], #4\n" \
  "bne 5f\n" \
  ORCH_DOT_THREES \
  ORCH_DOT_APART
#define ORCH_DOT_LOOPS(innermost) \
  asm volatile( \
      "ldr %[i], [%[loops]]\n" \
      "cmp %[i], #0\n" \
      "beq 7f\n" \
      "ldr %[x_step], [%[loops], #20]\n" \
      "lsl %[x_step], %[x_step], #2\n" \
      "ldr %[w_step], [%[loops], #32]\n" \
      "lsl %[w_step], %[w_step], #2\n" \
      "b 1f\n" \
      "0:\n" \
      "ldr %[k], [%[loops], #12]\n" \
      "add %[x], %[x], %[k], lsl #2\n" \
      "ldr %[k], [%[loops], #24]\n" \
      "add %[w0], %[w0], %[k], lsl #2\n" \
      "add %[w1], %[w1], %[k], lsl #2\n" \
      "add %[w2], %[w2], %[k], lsl #2\n" \
      "add %[w3], %[w3], %[k], lsl #2\n" \
      "1:\n" \
      "ldr %[j], [%[loops], #4]\n" \
      "2:\n" \
      "ldr %[k], [%[loops], #8]\n" \
      innermost \
      "6:\n" \
      "ldr %[k], [%[loops], #16]\n" \
      "add %[x], %[x], %[k], lsl #2\n" \
      "ldr %[k], [%[loops], #28]\n" \
      "add %[w0], %[w0], %[k], lsl #2\n" \
      "add %[w1], %[w1], %[k], lsl #2\n" \
      "add %[w2], %[w2], %[k], lsl #2\n" \
      "add %[w3], %[w3], %[k], lsl #2\n" \
      "subs %[j], %[j], #1\n" \
      "bne 2b\n" \
      "subs %[i], %[i], #1\n" \
      "bne 0b\n" \
      "7:\n" \
      : [x] "+r"(x), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), \
        [w3] "+r"(w3), [i] "=&r"(i), [j] "=&r"(j), [k] "=&r"(k), \
        [x_step] "=&r"(x_step), [w_step] "=&r"(w_step), "+t"(sum0), \
        "+t"(sum1), "+t"(sum2), "+t"(sum3) \
      : [loops] "r"(loops) \
      : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "cc", "memory")
// clang-format on

/// In place of dot4<float, true>, of such factors.
template <DotFactors kFactors>
__attribute__((noinline)) void dot4_floats(const Dot<float>& dot,
                                           const DotLoops* loops, float* sums) {
  register float sum0 asm("s0") = 0;
  register float sum1 asm("s1") = 0;
  register float sum2 asm("s2") = 0;
  register float sum3 asm("s3") = 0;
  if (dot.start != nullptr) {
    sum0 = dot.start[0];
    sum1 = dot.start[1];
    sum2 = dot.start[2];
    sum3 = dot.start[3];
  }
  const float* x = dot.x;
  const float* w0 = dot.w;
  const float* w1 = w0 + dot.w_next;
  const float* w2 = w1 + dot.w_next;
  const float* w3 = w2 + dot.w_next;
  int32_t i, j, k, x_step, w_step;
  if constexpr (kFactors == DotFactors::kThrees) {
    ORCH_DOT_LOOPS(ORCH_DOT_THREES ORCH_DOT_LEFT);
  } else if constexpr (kFactors == DotFactors::kFours) {
    ORCH_DOT_LOOPS(ORCH_DOT_FOURS ORCH_DOT_LEFT);
  } else if constexpr (kFactors == DotFactors::kApart) {
    ORCH_DOT_LOOPS(ORCH_DOT_APART);
  } else if constexpr (kFactors == DotFactors::kBeside) {
    ORCH_DOT_LOOPS(ORCH_DOT_BESIDE);
  } else {
    ORCH_DOT_LOOPS(ORCH_DOT_ANY);
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

static_assert(offsetof(DotLoops, x_step) == 12 &&
                  offsetof(DotLoops, w_step) == 24,
              "the assembly knows where things are");

#endif

/// Computes one sum or kDotBlock of them that share x. The loops are relative.
struct SharedDots {
  template <typename T>
  static ORCH_ALWAYS_INLINE void of(const Dot<T>& dot, const DotLoops& loops,
                                    int32_t block, Compute<T>* sums) {
    if (block == 1) {
      dot1(dot, &loops, sums);
#if ORCH_FLOAT_REGISTERS
    } else if constexpr (kIsSame<T, float>) {
      dot4_floats<DotFactors::kAny>(dot, &loops, sums);
#endif
    } else {
      dot4<T, true>(dot, &loops, sums);
    }
  }
};

/// The same, whether or not they share x.
struct AnyDots {
  template <typename T>
  static void of(const Dot<T>& dot, const DotLoops& loops, int32_t block,
                 Compute<T>* sums) {
    if (block == 1 || dot.x_next == 0) {
      SharedDots::of(dot, loops, block, sums);
    } else {
      dot4<T, false>(dot, &loops, sums);
    }
  }
};

/// The same with the functions that a call needs, so that a product has no
/// others.
struct KnownDots {
  using Fn = void (*)(const Dot<float>& dot, const DotLoops* loops,
                      float* sums);

  Fn four;  // null where sums are always one by one
  Fn one;   // null where there are always four

  /// What computes four sums that share x.
  template <DotFactors kFactors>
  static constexpr Fn four_of() {
#if ORCH_FLOAT_REGISTERS
    return dot4_floats<kFactors>;
#else
    return dot4<float, true>;
#endif
  }

  void of(const Dot<float>& dot, const DotLoops& loops, int32_t block,
          float* sums) const {
    (block == 1 ? one : four)(dot, &loops, sums);
  }
};

}  // namespace orch

#include "util/dot_half_mve.h"
