// Sums of products of halves with vectors, to the bits of util/dot.h, which
// includes this.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "util/isa.h"

#if ORCH_FLOAT_VECTORS

namespace orch {

/// dot4<Half, kSharedX> of util/dot.h: a lane is a sum, of floats.
///
/// Nothing is flushed to 0: conversions keep subnormal halves, and products of
/// halves are multiples of 2^-48, as are their sums.
template <bool kSharedX>
__attribute__((noinline)) void dot4_halves(const Dot<Half>& dot,
                                           const DotLoops* loops, float* sums) {
  struct {
    float sums[kDotBlock];
    int32_t x_at[kDotBlock];
    int32_t w_at[kDotBlock];
  } lanes;
  for (int32_t lane = 0; lane < kDotBlock; ++lane) {
    lanes.sums[lane] =
        dot.start == nullptr ? 0 : static_cast<float>(dot.start[lane]);
    lanes.x_at[lane] = lane * dot.x_next;
    lanes.w_at[lane] = lane * dot.w_next;
  }
  const Half* x = dot.x;
  const Half* w = dot.w;
  int32_t i, j, x_step, w_step, value;
#define ORCH_DOT_HALVES(factor, product)                                     \
  asm volatile(                                                              \
      "vldrw.32 q0, [%[lanes]]\n"                                            \
      "vldrw.32 q2, [%[lanes], #16]\n"                                       \
      "vldrw.32 q3, [%[lanes], #32]\n"                                       \
      "ldr %[i], [%[loops]]\n"                                               \
      "cmp %[i], #0\n"                                                       \
      "beq 4f\n"                                                             \
      "ldr %[x_step], [%[loops], #20]\n"                                     \
      "lsl %[x_step], %[x_step], #1\n"                                       \
      "ldr %[w_step], [%[loops], #32]\n"                                     \
      "lsl %[w_step], %[w_step], #1\n"                                       \
      "1:\n"                                                                 \
      "ldr %[j], [%[loops], #4]\n"                                           \
      "2:\n"                                                                 \
      "ldr lr, [%[loops], #8]\n"                                             \
      "dls lr, lr\n"                                                         \
      "3:\n" factor                                                          \
      "vldrh.u32 q1, [%[w], q3, uxtw #1]\n" ORCH_WIDEN_HALVES("1") product   \
      "vadd.f32 q0, q0, q1\n"                                                \
      "add %[x], %[x], %[x_step]\n"                                          \
      "add %[w], %[w], %[w_step]\n"                                          \
      "le lr, 3b\n"                                                          \
      "ldr %[value], [%[loops], #16]\n"                                      \
      "add %[x], %[x], %[value], lsl #1\n"                                   \
      "ldr %[value], [%[loops], #28]\n"                                      \
      "add %[w], %[w], %[value], lsl #1\n"                                   \
      "subs %[j], %[j], #1\n"                                                \
      "bne 2b\n"                                                             \
      "ldr %[value], [%[loops], #12]\n"                                      \
      "add %[x], %[x], %[value], lsl #1\n"                                   \
      "ldr %[value], [%[loops], #24]\n"                                      \
      "add %[w], %[w], %[value], lsl #1\n"                                   \
      "subs %[i], %[i], #1\n"                                                \
      "bne 1b\n"                                                             \
      "4:\n"                                                                 \
      "vstrw.32 q0, [%[lanes]]\n"                                            \
      : [x] "+r"(x), [w] "+r"(w), [i] "=&r"(i), [j] "=&r"(j),                \
        [x_step] "=&r"(x_step), [w_step] "=&r"(w_step), [value] "=&r"(value) \
      : [loops] "r"(loops), [lanes] "r"(&lanes)                              \
      : "lr", "q0", "q1", "q2", "q3", "q4", "cc", "memory")
  if constexpr (kSharedX) {
    ORCH_DOT_HALVES(
        "vldr.16 s16, [%[x]]\n"
        "vcvtb.f32.f16 s16, s16\n"
        "vmov %[value], s16\n",
        "vmul.f32 q1, q1, %[value]\n");
  } else {
    ORCH_DOT_HALVES(
        "vldrh.u32 q4, [%[x], q2, uxtw #1]\n" ORCH_WIDEN_HALVES("4"),
        "vmul.f32 q1, q1, q4\n");
  }
#undef ORCH_DOT_HALVES
  for (int32_t lane = 0; lane < kDotBlock; ++lane)
    sums[lane] = lanes.sums[lane];
}

template <>
inline void dot4<Half, true>(const Dot<Half>& dot, const DotLoops* loops,
                             float* sums) {
  dot4_halves<true>(dot, loops, sums);
}

template <>
inline void dot4<Half, false>(const Dot<Half>& dot, const DotLoops* loops,
                              float* sums) {
  dot4_halves<false>(dot, loops, sums);
}

static_assert(offsetof(DotLoops, x_step) == 12 &&
                  offsetof(DotLoops, w_step) == 24,
              "the assembly knows where things are");

}  // namespace orch

#endif
