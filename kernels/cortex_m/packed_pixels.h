// Inner loops of packed convolutions, for pixels, with vectors.
#pragma once

#include <stdint.h>

#include "packed.h"

namespace orch::cortex_m {

/// Pixels whose inputs are equally far apart, as are their outputs. Known to
/// the assembly.
struct Run {
  int32_t count;   // at least one
  int32_t x_step;  // bytes
  int32_t y_step;  // bytes, less than 64 K
  int32_t depth;
  int32_t channels;
  int32_t offset;  // added to outputs
#if ORCH_FAVOUR_SPEED
  int32_t special;  // 0: no ties, and a multiple of four channels
#endif
};

// All output channels of some pixels. Two pixels and four channels at a time:
// eight sums, as many as there are registers for. An odd last pixel is computed
// twice.
extern "C" {
using PixelLoop = void(const int8_t* x, const uint8_t* tiles, int8_t* y,
                       const Run* run);
PixelLoop orch_packed_pixels;
#if ORCH_FAVOUR_SPEED
// The same for at least two pixels of 16 taps: weights stay in registers.
PixelLoop orch_packed_pixels_16;
// For depths of a multiple of so many vectors.
PixelLoop orch_packed_pixels_2;
PixelLoop orch_packed_pixels_3;
PixelLoop orch_packed_pixels_4;
#endif
}
// All output channels of the first pixel of a run, eight at a time.
extern "C" void orch_packed_one_pixel(const int8_t* x, const uint8_t* tiles,
                                      int8_t* y, const Run* run);
// All output channels of a single pixel, eight at a time, all with one scale.
extern "C" void orch_packed_pixel(const int8_t* x, const uint8_t* tiles,
                                  int8_t* y, const PackedPixel* pixel);

}  // namespace orch::cortex_m
