// Rows of softmax with vectors, to the bits of op_softmax.cpp.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace orch::cortex_m {

// What the functions below have in registers:
//
//   r0 items, r8 how many are left, r1 the largest one of the row
//   r11 shift and r6 multiplier of distances to it, r3 constants
//
// r2, r4, r12, lr, q0 to q4 and vpr are changed; q5 has the distances.

/// exp(-1/8), 1/3, and exp(-1/4), exp(-1/2), ... exp(-16).
inline constexpr int32_t kSoftmaxConstants[] = {
    1895147668, 715827883, 1672461947, 1302514674, 790015084,
    290630308,  39332535,  720401,     242};

// If a power is a factor: q2 has the bit that decides, shifted to the sign; r4
// is 0.
#define ORCH_SOFTMAX_POWER(bits, at) \
  "vshl.i32 q1, q2, #" bits          \
  "\n"                               \
  "ldr r2, [r3, #" at                \
  "]\n"                              \
  "vpt.s32 lt, q1, r4\n"             \
  "vqrdmulht.s32 q0, q0, r2\n"

/// q0 = the exponentials of four items, as `exponential` computes them. Lanes
/// without an item hold anything. Nothing in between is negative where ties
/// would go elsewhere.
__attribute__((naked, noinline, unused)) inline void softmax_terms() {
  asm("vctp.32 r8\n"
      "vpst\n"
      "vldrbt.s32 q5, [r0], #4\n"
      "mov r2, #0x1000000\n"
      "vsub.i32 q5, q5, r1\n"
      "mov r4, #0x10000000\n"
      "vmov q0, q5\n"
      "vshl.s32 q0, r11\n"
      "vqrdmulh.s32 q0, q0, r6\n"
      "vmov q1, q0\n"
      "vbic.i32 q1, #0xff000000\n"
      "vsub.i32 q1, q1, r2\n"
      "vsub.i32 q2, q1, q0\n"  // steps, in the upper byte
      "vshl.i32 q1, q1, #5\n"
      "vadd.i32 q1, q1, r4\n"
      "mov r4, #0\n"
      "vcmp.i32 eq, q0, r4\n"
      "vmrs r12, p0\n"
      "vqrdmulh.s32 q0, q1, q1\n"
      "ldr r2, [r3, #4]\n"
      "vqrdmulh.s32 q3, q0, q0\n"
      "vqrdmulh.s32 q4, q0, q1\n"
      "vrshr.s32 q3, q3, #2\n"
      "vadd.i32 q3, q3, q4\n"
      "vqrdmulh.s32 q3, q3, r2\n"
      "ldr r2, [r3]\n"
      "vadd.i32 q3, q3, q0\n"
      "vrshr.s32 q3, q3, #1\n"
      "vadd.i32 q1, q1, q3\n"
      "vqrdmulh.s32 q0, q1, r2\n"
      "vadd.i32 q0, q0, r2\n"  //
      ORCH_SOFTMAX_POWER("7", "8") ORCH_SOFTMAX_POWER("6", "12")
          ORCH_SOFTMAX_POWER("5", "16") ORCH_SOFTMAX_POWER("4", "20")
              ORCH_SOFTMAX_POWER("3", "24") ORCH_SOFTMAX_POWER("2", "28")
                  ORCH_SOFTMAX_POWER("1", "32")
      // The exponential of 0 is all but 1.
      "mvn r2, #0x80000000\n"
      "vmsr p0, r12\n"
      "vpst\n"
      "vdupt.32 q0, r2\n"
      "bx lr\n");
}

#undef ORCH_SOFTMAX_POWER

/// The largest of `count` items.
inline int32_t largest_item(const int8_t* x, int32_t count) {
  int32_t largest = INT8_MIN;
  asm volatile(
      "wlstp.8 lr, %[count], 2f\n"
      "1:\n"
      "vldrb.8 q0, [%[x]], #16\n"
      "vmaxv.s8 %[largest], q0\n"
      "letp lr, 1b\n"
      "2:\n"
      : [x] "+l"(x), [largest] "+r"(largest)
      : [count] "r"(count)
      : "lr", "q0", "cc", "memory");
  return largest;
}

/// How the items of a row differ from the largest one, and what they are
/// multiplied by.
struct SoftmaxRow {
  const int8_t* x;
  int32_t count;
  int32_t largest;
  int32_t diff_min;
  uint32_t shift;
  int32_t multiplier;  // 0 or above
};

/// The sum of a row, or a number from `kMaxSum`, 2^28, on.
__attribute__((noinline)) inline uint32_t softmax_sum(const SoftmaxRow& row) {
  register const int8_t* x asm("r0") = row.x;
  register int32_t largest asm("r1") = row.largest;
  register int32_t diff_min asm("r2") = row.diff_min;
  register const int32_t* constants asm("r3") = kSoftmaxConstants;
  register uint32_t shift asm("r11") = row.shift;
  register int32_t multiplier asm("r6") = row.multiplier;
  register int32_t left asm("r8") = row.count;
  register uint32_t sum asm("r10") = 0;
  asm volatile(
      "vdup.32 q6, r2\n"
      "1:\n"
      "bl %c[terms]\n"
      "vrshr.s32 q0, q0, #12\n"
      "vctp.32 r8\n"
      "vpst\n"
      "vcmpt.s32 ge, q5, q6\n"
      "vpst\n"
      "vaddvat.u32 r10, q0\n"
      "cmp r10, #0x10000000\n"
      "bhs 2f\n"
      "subs r8, r8, #4\n"
      "bgt 1b\n"
      "2:\n"
      : "+r"(x), "+r"(diff_min), "+r"(left), "+r"(sum)
      : "r"(largest), "r"(constants), "r"(shift),
        "r"(multiplier), [terms] "i"(softmax_terms)
      : "r4", "r12", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "cc",
        "memory");
  return sum;
}

/// Writes the shares of a row: `scale` times its items, without `bits` bits.
__attribute__((noinline)) inline void softmax_shares(const SoftmaxRow& row,
                                                     int32_t scale,
                                                     uint32_t bits,
                                                     int8_t* to) {
  register const int8_t* x asm("r0") = row.x;
  register int32_t largest asm("r1") = row.largest;
  register int32_t diff_min asm("r2") = row.diff_min;
  register const int32_t* constants asm("r3") = kSoftmaxConstants;
  register uint32_t right asm("r4") = 0U - bits;
  register uint32_t shift asm("r11") = row.shift;
  register int32_t multiplier asm("r6") = row.multiplier;
  register int32_t left asm("r8") = row.count;
  register int32_t factor asm("r10") = scale;
  register int8_t* y asm("r5") = to;
  asm volatile(
      "vdup.32 q6, r2\n"
      "vdup.32 q7, r4\n"
      "1:\n"
      "bl %c[terms]\n"
      "vqrdmulh.s32 q0, q0, r10\n"
      "vmov.i32 q1, #0\n"
      "vrshl.s32 q0, q0, q7\n"
      "vcmp.s32 ge, q5, q6\n"
      "mov r2, #128\n"
      "vpsel q0, q0, q1\n"
      "vmov.i32 q1, #255\n"
      "vmin.s32 q0, q0, q1\n"
      "vsub.i32 q0, q0, r2\n"
      "vctp.32 r8\n"
      "vpst\n"
      "vstrbt.32 q0, [r5], #4\n"
      "subs r8, r8, #4\n"
      "bgt 1b\n"
      : "+r"(x), "+r"(diff_min), "+r"(right), "+r"(left), "+r"(y)
      : "r"(largest), "r"(constants), "r"(shift),
        "r"(multiplier), [terms] "i"(softmax_terms), "r"(factor)
      : "r12", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc",
        "memory");
}

}  // namespace orch::cortex_m
