// Sums of products over images: convolution, matrix products.
#pragma once

#include <stdint.h>

#include "image.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

/// A convolution of NHWC images with OHWI weights; those of a depthwise one are
/// [1, H, W, out].
struct Convolution {
  Image in;
  Image out;
  Axis rows;
  Axis columns;
  int32_t group_channels;  // input channels that an output channel sees
  int32_t group_outputs;   // output channels that see the same
  int32_t multiplier;      // of a depthwise one: outputs per input channel
  int32_t x_offset;        // added to inputs that are no padding
  int32_t w_offset;        // added to weights
  const int8_t* x;
  const int8_t* w;
  const int32_t* bias;  // per output channel, or null
  int8_t* y;
  Output to;
};

/// Which operator the arguments are of.
enum class Kind : uint8_t { kConvolution, kDepthwise };

/// Reads the parameters and checks them against the tensors; gives the output
/// its sizes. Errors: InvalidArgument, NotSupported, those of `resize`.
Error prepare(const Args& args, Kind kind, Layout layout, Convolution& conv);

/// y = requantize(bias + sum of (x + x_offset) * (w + w_offset)).
void convolve(const Convolution& conv);

/// The same of a depthwise one; it has no w_offset.
void convolve_depthwise(const Convolution& conv);

/// What `convolve` does of matrices: x of [rows, depth], w of [columns, depth],
/// y of [rows, columns]; both have dense rows.
void multiply(Convolution& conv, int32_t rows, int32_t depth, int32_t columns);

}  // namespace orch::cortex_m
