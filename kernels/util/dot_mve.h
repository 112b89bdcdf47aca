// Sums of products of floats, eight of each row side by side, to the bits of
// util/dot.h: a lane has a sum of its own, and products are rounded before they
// are added.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "util/dot.h"
#include "util/isa.h"
#include "util/within.h"

// Whether some call of the product has numbers added to whole sums, or limits.
#ifndef ORCH_SUMS_ADDED
#define ORCH_SUMS_ADDED 0
#endif
#ifndef ORCH_SUMS_LIMITED
#define ORCH_SUMS_LIMITED 0
#endif

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

/// Sums of rows and of eight lanes: lanes have factors x at places of their
/// own, rows factors w and starts. Rows are even steps apart. Known to the
/// assembly below.
struct VectorDot {
  DotLoops loops;                // relative
  int32_t lanes;                 // that are stored, at least one
  int32_t x_lane[kVectorLanes];  // in items; those not stored are read, too
  int32_t y_lane[kVectorLanes];
  const float* x;  // of the first row
  const float* w;
  const float* start;
  int32_t start_next;  // to the next row
  float* y;
  int32_t y_next;
  int32_t x_next;  // 0 means that all share x
  int32_t w_next;
#if ORCH_SUMS_ADDED
  const float*
      added;  // to the sums of each lane before they are stored, or null
#endif
#if ORCH_SUMS_LIMITED
  const Limits* limits;  // of what is stored, or null
#endif

  /// Lanes whose places are even steps apart; those beyond `count` are the
  /// last.
  void set_lanes(int32_t count, int32_t x_step, int32_t y_step) {
    lanes = count < kVectorLanes ? count : kVectorLanes;
    int32_t x_at = 0;
    int32_t y_at = 0;
    for (int32_t lane = 0; lane < kVectorLanes; ++lane) {
      x_lane[lane] = x_at;
      y_lane[lane] = y_at;
      if (lane + 1 >= lanes) continue;
      x_at += x_step;
      y_at += y_step;
    }
  }
};

static_assert(
    offsetof(VectorDot, loops) == 0 && offsetof(DotLoops, x_step) == 12 &&
        offsetof(DotLoops, w_step) == 24 && offsetof(VectorDot, lanes) == 36 &&
        offsetof(VectorDot, x_lane) == 40 &&
        offsetof(VectorDot, y_lane) == 72 && offsetof(VectorDot, x) == 104 &&
        offsetof(VectorDot, w) == 108 && offsetof(VectorDot, start) == 112 &&
        offsetof(VectorDot, start_next) == 116 &&
        offsetof(VectorDot, y) == 120 && offsetof(VectorDot, y_next) == 124 &&
        offsetof(VectorDot, x_next) == 128 &&
        offsetof(VectorDot, w_next) == 132 && offsetof(Limits, low) == 0 &&
        offsetof(Limits, high) == 4,
    "the assembly knows where things are");

/// Which rows of a VectorDot are computed.
enum class VectorRows : int32_t {
  kShared,  // the first two, of the same x
  kOne,     // the first
  kOwn,     // the first two, each of an x of its own
  kPairs,   // as kShared: innermost an even number of neighbours in w
};

// What becomes of the sums in q0 to q3 before they are stored. Products have
// only what some call of theirs needs. Where it looks at them, a second row
// that is not computed is 0, so that it sees no subnormal number.
// clang-format off
#if ORCH_SUMS_ADDED || ORCH_SUMS_LIMITED
#define ORCH_SECOND_START \
  "ite ne\n" \
  "ldrne %[value1], [%[value0], %[j], lsl #2]\n" \
  "moveq %[value1], #0\n"
#else
#define ORCH_SECOND_START \
  "it ne\n" \
  "ldrne %[value1], [%[value0], %[j], lsl #2]\n"
#endif
#if ORCH_SUMS_ADDED
static_assert(offsetof(VectorDot, added) == 136,
              "the assembly knows where things are");
#define ORCH_ADD_TO_SUMS \
  "ldr %[x], [%[dot], #136]\n" \
  "cbz %[x], 14f\n" \
  "vctp.32 %[at]\n" \
  "vpst\n" \
  "vldrwt.u32 q4, [%[x]]\n" \
  "vctp.32 %[j]\n" \
  "vpst\n" \
  "vldrwt.u32 q5, [%[x], #16]\n" \
  "vadd.f32 q0, q4, q0\n" \
  "vadd.f32 q1, q5, q1\n" \
  "vadd.f32 q2, q4, q2\n" \
  "vadd.f32 q3, q5, q3\n" \
  "14:\n"
#else
#define ORCH_ADD_TO_SUMS
#endif
#if ORCH_SUMS_LIMITED
#if ORCH_SUMS_ADDED
#define ORCH_LIMITS_AT "#140"
#else
#define ORCH_LIMITS_AT "#136"
#endif
static_assert(offsetof(VectorDot, limits) == (ORCH_SUMS_ADDED ? 140 : 136),
              "the assembly knows where things are");
#define ORCH_LIMIT_SUMS \
  "ldr %[x], [%[dot], " ORCH_LIMITS_AT "]\n" \
  "cbz %[x], 13f\n" \
  "ldrd %[value0], %[value1], [%[x]]\n" \
  "vdup.32 q4, %[value0]\n" \
  "vpt.f32 gt, q4, q0\n" /* false of NaN, which stays */ \
  "vmovt q0, q4\n" \
  "vpt.f32 gt, q4, q1\n" \
  "vmovt q1, q4\n" \
  "vpt.f32 gt, q4, q2\n" \
  "vmovt q2, q4\n" \
  "vpt.f32 gt, q4, q3\n" \
  "vmovt q3, q4\n" \
  "cmp %[value1], #0x7F800000\n" /* of relu */ \
  "beq 13f\n" \
  "vpt.f32 gt, q0, %[value1]\n" \
  "vdupt.32 q0, %[value1]\n" \
  "vpt.f32 gt, q1, %[value1]\n" \
  "vdupt.32 q1, %[value1]\n" \
  "vpt.f32 gt, q2, %[value1]\n" \
  "vdupt.32 q2, %[value1]\n" \
  "vpt.f32 gt, q3, %[value1]\n" \
  "vdupt.32 q3, %[value1]\n" \
  "13:\n"
#else
#define ORCH_LIMIT_SUMS
#endif
// clang-format on

/// Computes their sums. What vectors flush to 0 is.
ORCH_ALWAYS_INLINE void dot_vectors(const VectorDot& dot, VectorRows rows) {
  int32_t i, j, x, w0, w1, at, x_step, w_step, value0, value1;
  asm volatile(
      "ldrd %[value0], %[j], [%[dot], #112]\n"
      "cmp %[rows], #1\n" ORCH_SECOND_START
      "ldr %[value0], [%[value0]]\n"
      "vdup.32 q0, %[value0]\n"
      "vdup.32 q1, %[value0]\n"
      "vdup.32 q2, %[value1]\n"
      "vdup.32 q3, %[value1]\n"
      "vldrw.32 q6, [%[dot], #40]\n"
      "vldrw.32 q7, [%[dot], #56]\n"
      "ldr %[i], [%[dot]]\n"
      "cmp %[i], #0\n"
      "beq 6f\n"
      "ldrd %[x], %[w0], [%[dot], #104]\n"
      "ldr %[w1], [%[dot], #132]\n"
      "add %[w1], %[w0], %[w1], lsl #2\n"
      "ldr %[x_step], [%[dot], #20]\n"
      "lsl %[x_step], %[x_step], #2\n"
      "ldr %[w_step], [%[dot], #32]\n"
      "mov %[at], #0\n"
      "1:\n"  // the outermost loop
      "ldr %[j], [%[dot], #4]\n"
      "2:\n"
      "ldr lr, [%[dot], #8]\n"
      "cbnz %[rows], 4f\n"
      "dls lr, lr\n"
      "3:\n"  // a product of each sum of both rows, of the same x
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
      "b 7f\n"
      "4:\n"
      "cmp %[rows], #2\n"
      "beq 5f\n"
      "bhi 10f\n"
      "dls lr, lr\n"
      "8:\n"  // of one row
      "ldr %[value0], [%[w0], %[at], lsl #2]\n"
      "vldrw.u32 q4, [%[x], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q0, q0, q5\n"
      "vldrw.u32 q4, [%[x], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q1, q1, q5\n"
      "add %[x], %[x], %[x_step]\n"
      "add %[at], %[at], %[w_step]\n"
      "le lr, 8b\n"
      "b 7f\n"
      "5:\n"  // of both rows, each of its own x
      "ldr %[value1], [%[dot], #128]\n"
      "add %[value1], %[x], %[value1], lsl #2\n"
      "dls lr, lr\n"
      "12:\n"
      "ldr %[value0], [%[w0], %[at], lsl #2]\n"
      "vldrw.u32 q4, [%[x], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q0, q0, q5\n"
      "vldrw.u32 q4, [%[x], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q1, q1, q5\n"
      "ldr %[value0], [%[w1], %[at], lsl #2]\n"
      "vldrw.u32 q4, [%[value1], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q2, q2, q5\n"
      "vldrw.u32 q4, [%[value1], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q3, q3, q5\n"
      "add %[x], %[x], %[x_step]\n"
      "add %[value1], %[value1], %[x_step]\n"
      "add %[at], %[at], %[w_step]\n"
      "le lr, 12b\n"
      "b 7f\n"
      "10:\n"  // the first loop, two turns in one
      "lsr lr, lr, #1\n"
      "dls lr, lr\n"
      "add %[w0], %[w0], %[at], lsl #2\n"
      "add %[w1], %[w1], %[at], lsl #2\n"
      "11:\n"
      "ldrd %[value0], %[value1], [%[w0]], #8\n"
      "ldrd %[w_step], %[at], [%[w1]], #8\n"
      "vldrw.u32 q4, [%[x], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q0, q0, q5\n"
      "vmul.f32 q5, q4, %[w_step]\n"
      "vadd.f32 q2, q2, q5\n"
      "vldrw.u32 q4, [%[x], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value0]\n"
      "vadd.f32 q1, q1, q5\n"
      "vmul.f32 q5, q4, %[w_step]\n"
      "vadd.f32 q3, q3, q5\n"
      "add %[x], %[x], %[x_step]\n"
      "vldrw.u32 q4, [%[x], q6, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value1]\n"
      "vadd.f32 q0, q0, q5\n"
      "vmul.f32 q5, q4, %[at]\n"
      "vadd.f32 q2, q2, q5\n"
      "vldrw.u32 q4, [%[x], q7, uxtw #2]\n"
      "vmul.f32 q5, q4, %[value1]\n"
      "vadd.f32 q1, q1, q5\n"
      "vmul.f32 q5, q4, %[at]\n"
      "vadd.f32 q3, q3, q5\n"
      "add %[x], %[x], %[x_step]\n"
      "le lr, 11b\n"
      "mov %[at], #0\n"
      "7:\n"
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
      "ldr %[at], [%[dot], #36]\n"
      "sub %[j], %[at], #4\n"
      "usat %[j], #3, %[j]\n" ORCH_ADD_TO_SUMS ORCH_LIMIT_SUMS
      "vldrw.32 q6, [%[dot], #72]\n"
      "vldrw.32 q7, [%[dot], #88]\n"
      "ldrd %[w0], %[w1], [%[dot], #120]\n"
      "vctp.32 %[at]\n"
      "vpst\n"
      "vstrwt.32 q0, [%[w0], q6, uxtw #2]\n"
      "vctp.32 %[j]\n"
      "vpst\n"
      "vstrwt.32 q1, [%[w0], q7, uxtw #2]\n"
      "cmp %[rows], #1\n"
      "beq 9f\n"
      "add %[w1], %[w0], %[w1], lsl #2\n"
      "vpst\n"
      "vstrwt.32 q3, [%[w1], q7, uxtw #2]\n"
      "vctp.32 %[at]\n"
      "vpst\n"
      "vstrwt.32 q2, [%[w1], q6, uxtw #2]\n"
      "9:\n"
      : [i] "=&r"(i), [j] "=&r"(j), [x] "=&l"(x), [w0] "=&r"(w0),
        [w1] "=&r"(w1), [at] "=&r"(at), [x_step] "=&r"(x_step),
        [w_step] "=&r"(w_step), [value0] "=&r"(value0), [value1] "=&r"(value1)
      : [dot] "r"(&dot), [rows] "l"(rows)
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
}

#undef ORCH_SECOND_START
#undef ORCH_ADD_TO_SUMS
#undef ORCH_LIMIT_SUMS

/// One row, item by item.
__attribute__((noinline)) inline void dot_items(const VectorDot& dot,
                                                int32_t row) {
  for (int32_t lane = 0; lane < dot.lanes; ++lane) {
    const Dot<float> one = {dot.x + row * dot.x_next + dot.x_lane[lane],
                            dot.w + row * dot.w_next,
                            dot.start + row * dot.start_next, 0, 0};
    float* const y = dot.y + row * dot.y_next + dot.y_lane[lane];
    dot1(one, &dot.loops, y);
#if ORCH_SUMS_ADDED
    if (dot.added != nullptr) *y = dot.added[lane] + *y;
#endif
#if ORCH_SUMS_LIMITED
    if (dot.limits != nullptr) store_within(*dot.limits, *y, y);
#endif
  }
}

/// Computes rows, and leaves pointers behind them; those where something was
/// flushed again, item by item. Needs flags that were clear, and leaves them
/// so.
__attribute__((noinline)) inline void dot_rows(VectorDot& dot, int32_t rows) {
  VectorRows kind = VectorRows::kOwn;
  if (dot.x_next == 0) {
    kind = dot.loops.w_step[2] == 1 && dot.loops.count[2] % 2 == 0
               ? VectorRows::kPairs
               : VectorRows::kShared;
  }
  for (int32_t block; rows > 0; rows -= block) {
    block = kVectorRows;
    if (rows == 1) {
      kind = VectorRows::kOne;
      block = 1;
    }
    dot_vectors(dot, kind);
    if (FlushFlags::any()) {
      for (int32_t row = 0; row < block; ++row) dot_items(dot, row);
      FlushFlags::clear();
    }
    dot.x += block * dot.x_next;
    dot.w += block * dot.w_next;
    dot.start += block * dot.start_next;
    dot.y += block * dot.y_next;
  }
}

}  // namespace orch

#endif
