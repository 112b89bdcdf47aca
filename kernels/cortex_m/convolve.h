// Sums of products over images: convolution, matrix products.
#pragma once

#include <stdint.h>

#include "image.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

/// A convolution of NHWC images with OHWI weights; those of a depthwise one are
/// [1, H, W, out].
struct Convolution : ConvolutionSizes {
  const int8_t* x;
  const int8_t* w;
  const int32_t* bias;  // per output channel, or null
  int8_t* y;
  Output to;
};

/// A convolution that the build prepared.
__attribute__((noinline)) inline Convolution convolution_of(
    const ConvolutionCall& call) {
  const bool per_channel = call.multipliers != nullptr;
  const int32_t* const multipliers =
      static_cast<const int32_t*>(call.multipliers);
  const int32_t* const shifts = static_cast<const int32_t*>(call.shifts);
  return {call.sizes,
          static_cast<const int8_t*>(call.input),
          static_cast<const int8_t*>(call.weights),
          static_cast<const int32_t*>(call.bias),
          static_cast<int8_t*>(call.out),
          {per_channel ? multipliers : &call.scale.multiplier,
           per_channel ? shifts : &call.scale.shift, per_channel ? 1 : 0,
           call.offset, call.range}};
}

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

/// The same of a prepared call, whose images are the matrices: a line of
/// pixels.
inline void multiply(const ConvolutionCall& call) {
  Convolution conv = convolution_of(call);
  multiply(conv, conv.in.width, conv.in.channels, conv.out.channels);
}

}  // namespace orch::cortex_m
