// Sums of products of floats, eight of each row side by side, to the bits of
// util/dot.h: a lane has a sum of its own, and products are rounded before they
// are added.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "util/dot.h"
#include "util/isa.h"

#if ORCH_FLOAT_VECTORS

namespace orch {

/// Whether vectors have treated a number as 0 that is none.
///
/// Vectors take subnormal numbers for 0 and give 0 for subnormal results,
/// whatever FPSCR.FZ says, and set the cumulative flags IDC and UFC when they
/// do; the plain code keeps such numbers. Source: Armv8-M Architecture
/// Reference Manual (DDI 0553), StandardFPSCRValue, FPUnpack and FPRound; QEMU
/// does the same with its standard_fp_status.
class FlushFlags {
 public:
  FlushFlags() : before_(read()) { write(before_ & ~kBoth); }
  /// What the caller may have seen before stays set.
  ~FlushFlags() { write(read() | (before_ & kBoth)); }
  FlushFlags(const FlushFlags&) = delete;
  FlushFlags& operator=(const FlushFlags&) = delete;

  static bool any() { return (read() & kBoth) != 0; }
  static void clear() { write(read() & ~kBoth); }

 private:
  static constexpr uint32_t kBoth = 1U << 7 | 1U << 3;  // IDC, UFC

  static uint32_t read() {
    uint32_t value;
    asm volatile("vmrs %0, fpscr" : "=r"(value));
    return value;
  }
  static void write(uint32_t value) {
    asm volatile("vmsr fpscr, %0" : : "r"(value));
  }

  uint32_t before_;
};

inline constexpr int kVectorLanes = 8;
inline constexpr int kVectorRows = 2;

/// Sums of up to two rows and eight lanes: lanes have factors x of their own,
/// rows factors w. What a second row has does not matter if only one is
/// computed. Known to the assembly below.
struct VectorDot {
  DotLoops loops;                // relative
  int32_t lanes;                 // that are stored, at least one
  int32_t x_lane[kVectorLanes];  // in items; those not stored are read, too
  int32_t y_lane[kVectorLanes];
  const float* x;
  const float* w[kVectorRows];
  float start[kVectorRows];
  float* y[kVectorRows];
};

static_assert(
    offsetof(VectorDot, loops) == 0 && offsetof(DotLoops, x_step) == 12 &&
        offsetof(DotLoops, w_step) == 24 && offsetof(VectorDot, lanes) == 36 &&
        offsetof(VectorDot, x_lane) == 40 &&
        offsetof(VectorDot, y_lane) == 72 && offsetof(VectorDot, x) == 104 &&
        offsetof(VectorDot, w) == 108 && offsetof(VectorDot, start) == 116 &&
        offsetof(VectorDot, y) == 124,
    "the assembly knows where things are");

/// Computes one row or both. What vectors flush to 0 is.
ORCH_ALWAYS_INLINE void dot_vectors(const VectorDot& dot, bool one_row) {
  int32_t i, j, x, w0, w1, at, x_step, w_step, value0, value1;
  asm volatile(
      "vldrw.32 q6, [%[dot], #40]\n"
      "vldrw.32 q7, [%[dot], #56]\n"
      "ldrd %[value0], %[value1], [%[dot], #116]\n"
      "vdup.32 q0, %[value0]\n"
      "vdup.32 q1, %[value0]\n"
      "vdup.32 q2, %[value1]\n"
      "vdup.32 q3, %[value1]\n"
      "ldr %[i], [%[dot]]\n"
      "cmp %[i], #0\n"
      "beq 6f\n"
      "ldrd %[x], %[w0], [%[dot], #104]\n"
      "ldr %[w1], [%[dot], #112]\n"
      "ldr %[x_step], [%[dot], #20]\n"
      "lsl %[x_step], %[x_step], #2\n"
      "ldr %[w_step], [%[dot], #32]\n"
      "mov %[at], #0\n"
      "1:\n"  // the outermost loop
      "ldr %[j], [%[dot], #4]\n"
      "2:\n"
      "ldr lr, [%[dot], #8]\n"
      "dls lr, lr\n"
      "cbnz %[one_row], 4f\n"
      "3:\n"  // a product of each sum of both rows
      "ldr %[value0], [%[w0], %[at], lsl #2]\n"
      "vldrw.u32 q4, [%[x], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q0, q0, q5\n"
      "ldr %[value1], [%[w1], %[at], lsl #2]\n"
      "vmul.f32 q5, q4, %[value1]\n"
      "vadd.f32 q2, q2, q5\n"
      "vldrw.u32 q4, [%[x], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q1, q1, q5\n"
      "vmul.f32 q5, q4, %[value1]\n"
      "vadd.f32 q3, q3, q5\n"
      "add %[x], %[x], %[x_step]\n"
      "add %[at], %[at], %[w_step]\n"
      "le lr, 3b\n"
      "b 5f\n"
      "4:\n"  // the same for one row
      "ldr %[value0], [%[w0], %[at], lsl #2]\n"
      "vldrw.u32 q4, [%[x], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q0, q0, q5\n"
      "vldrw.u32 q4, [%[x], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q1, q1, q5\n"
      "add %[x], %[x], %[x_step]\n"
      "add %[at], %[at], %[w_step]\n"
      "le lr, 4b\n"
      "5:\n"
      "ldr %[value0], [%[dot], #16]\n"
      "ldr %[value1], [%[dot], #28]\n"
      "add %[x], %[x], %[value0], lsl #2\n"
      "add %[at], %[at], %[value1]\n"
      "subs %[j], %[j], #1\n"
      "bne 2b\n"
      "ldr %[value0], [%[dot], #12]\n"
      "ldr %[value1], [%[dot], #24]\n"
      "add %[x], %[x], %[value0], lsl #2\n"
      "add %[at], %[at], %[value1]\n"
      "subs %[i], %[i], #1\n"
      "bne 1b\n"
      "6:\n"
      "vldrw.32 q6, [%[dot], #72]\n"
      "vldrw.32 q7, [%[dot], #88]\n"
      "ldr %[i], [%[dot], #36]\n"
      "ldrd %[w0], %[w1], [%[dot], #124]\n"
      "vctp.32 %[i]\n"
      "vpst\n"
      "vstrwt.32 q0, [%[w0], q6, uxtw #2]\n"
      "subs %[j], %[i], #4\n"
      "it mi\n"
      "movmi %[j], #0\n"
      "vctp.32 %[j]\n"
      "vpst\n"
      "vstrwt.32 q1, [%[w0], q7, uxtw #2]\n"
      "cbnz %[one_row], 7f\n"
      "vpst\n"
      "vstrwt.32 q3, [%[w1], q7, uxtw #2]\n"
      "vctp.32 %[i]\n"
      "vpst\n"
      "vstrwt.32 q2, [%[w1], q6, uxtw #2]\n"
      "7:\n"
      : [i] "=&r"(i), [j] "=&r"(j), [x] "=&r"(x), [w0] "=&r"(w0),
        [w1] "=&r"(w1), [at] "=&r"(at), [x_step] "=&r"(x_step),
        [w_step] "=&r"(w_step), [value0] "=&r"(value0), [value1] "=&r"(value1)
      : [dot] "r"(&dot), [one_row] "l"(one_row ? 1 : 0)
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
}

/// Computes `rows` rows; again, and item by item, if something was flushed.
/// Needs flags that were clear, and leaves them so.
__attribute__((noinline)) inline void dot_tile(const VectorDot& dot,
                                               int32_t rows) {
  dot_vectors(dot, rows == 1);
  if (!FlushFlags::any()) return;
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t lane = 0; lane < dot.lanes; ++lane) {
      const Dot<float> one = {dot.x + dot.x_lane[lane], dot.w[row],
                              &dot.start[row], 0, 0};
      dot1(one, &dot.loops, dot.y[row] + dot.y_lane[lane]);
    }
  }
  FlushFlags::clear();
}

}  // namespace orch

#endif
