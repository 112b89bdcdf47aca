// Floats to int8 and back with vectors, to the same bits as util/affine.h.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "util/affine.h"

namespace orch::cortex_m {

/// Whether vectors give the same: they take subnormals for 0, which makes no
/// difference as long as scales are far from them.
inline bool suits_vectors(const Affine& affine) {
  return affine.scale > 0x1p-64F && affine.scale < 0x1p64F;
}

/// Quantizes `count` items.
inline void quantize_vectors(const float* from, int8_t* to, int32_t count,
                             const Affine& affine) {
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
      : [count] "r"(count), [inverse] "r"(1.0F / affine.scale),
        [zero] "r"(static_cast<float>(affine.zero_point)),
        [low] "r"(static_cast<float>(affine.low)),
        [high] "r"(static_cast<float>(affine.high))
      : "lr", "q0", "q1", "q2", "cc", "memory");
}

/// Turns `count` items into floats.
inline void dequantize_vectors(const int8_t* from, float* to, int32_t count,
                               const Affine& affine) {
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
      : [count] "r"(count), [zero] "r"(affine.zero_point),
        [scale] "r"(affine.scale)
      : "lr", "q0", "cc", "memory");
}

}  // namespace orch::cortex_m
