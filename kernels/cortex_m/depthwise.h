// Depthwise convolution of images.
#pragma once

#include <stdint.h>

#include "image.h"
#include "isa.h"

namespace orch::cortex_m {

struct Depthwise {
  Image in;
  Image out;
  Axis rows;
  Axis columns;
  int32_t multiplier;  // outputs per input channel
  int32_t x_offset;
  const int8_t* x;
  const int8_t* w;      // [1, H, W, out]
  const int32_t* bias;  // per output channel, or null
  int8_t* y;
  Output to;
};

#if ORCH_ISA == ORCH_ISA_MVE
/// Computes a convolution with few taps, which most are; false if it is none of
/// these.
bool convolve_strips(const Depthwise& conv);
#endif

}  // namespace orch::cortex_m
