// Depthwise convolution of images.
#pragma once

#include <stdint.h>

#include "convolve.h"
#include "isa.h"

namespace orch::cortex_m {

using Depthwise = Convolution;

#if ORCH_ISA == ORCH_ISA_MVE
/// Computes a convolution with few taps, which most are; false if it is none of
/// these.
bool convolve_strips(const Depthwise& conv);
#endif

}  // namespace orch::cortex_m
