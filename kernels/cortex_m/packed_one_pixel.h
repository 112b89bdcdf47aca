// The inner loop of packed convolutions for vectors of a single pixel, the last
// of an odd number.
#pragma once

#include <stdint.h>

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
};

// All output channels of the first pixel of a run, eight at a time.
extern "C" void orch_packed_one_pixel(const int8_t* x, const uint8_t* tiles,
                                      int8_t* y, const Run* run);

}  // namespace orch::cortex_m
