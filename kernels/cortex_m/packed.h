// Convolutions whose weights the build packed for cores with DSP or vector
// instructions.
#pragma once

#include <stdint.h>

#include "image.h"
#include "prepared.h"

namespace orch::cortex_m {

/// What the build knows of a call; the packed weights follow. Its source is
/// orchestrator/method/passes/packing/header.py.
struct PackedConvolution {
  Axis rows;
  Axis columns;
  int32_t batch;
  int32_t in_channels;
  int32_t out_channels;
  int32_t depth;    // taps of an output, up to the next whole step of the loop
  int32_t padding;  // what inputs that do not exist are
  int32_t offset;   // added to outputs
};

/// Bytes between inputs and outputs. Lines are rows of the image, and pixels
/// lie in them; or they are its columns, and `rows` and `columns` have changed
/// places.
struct PackedSteps {
  int32_t x_line;   // from a line of the image to the next one
  int32_t x_pixel;  // from a pixel of a line to the next one
  int32_t y_line;   // the same of outputs, less than 64 K
  int32_t y_pixel;
};

/// What the build knows of a call for vector instructions. A transposed
/// convolution has several of these, one for each phase, as has a convolution
/// of groups of channels.
struct PackedPixels {
  PackedConvolution conv;
  int32_t pixels;    // that `scratch` has room for
  int32_t in_bytes;  // of all images where what a pixel sees lies side by side;
                     // else 0
  PackedSteps steps;
  int32_t x_first;  // bytes to the first input
  int32_t y_first;  // bytes to the first output
  int32_t y_image;  // from an image to the next one
  int32_t next;     // from here to the next of these, or 0
};

/// What the build knows of a call for vector instructions whose windows have
/// three lines, side by side, and whole vectors of channels. Tiles of two
/// channels follow:
///
///   int8_t weights[...]    for each 16 taps of a line, those of the three
///                          lines of one channel, then of the other
///   for each channel: int32_t start of the sum, int32_t multiplier,
///   int32_t shift          to the left, so none is positive
struct PackedLines {
  PackedConvolution conv;
  int32_t pixels;  // of a strip, a multiple of four
  int32_t blocks;  // vectors of a line
  PackedSteps steps;
};

/// What the build knows of a call for a single pixel, with vector instructions
/// and one scale for all channels.
struct PackedPixel {
  PackedConvolution conv;
  int32_t multiplier;
  int32_t shift;  // to the left, so not positive
};

/// For vector instructions a tile is four channels:
///
///   int32_t start[4]       of the sums
///   int8_t weights[...]    for each 16 taps, those of one channel after
///   another int32_t multiplier[4] int32_t shift[4]       to the left, so none
///   is positive
///
/// Of a single pixel it is eight, 0, 2, 4 and 6 first, with starts and weights
/// only.

/// What the build knows of a depthwise call. Groups of channels follow.
struct PackedDepthwise {
  Axis rows;
  Axis columns;
  int32_t batch;
  int32_t channels;
  int32_t outputs;  // as many, but for DSP instructions; or a multiple
  int32_t padding;  // what inputs that do not exist are
  // Of taps; the last ones may have no weights. Of windows of 3 x 3: how many
  // outputs of a row a call for one row computes at a time.
  int32_t pairs;
  int32_t group_bytes;  // of all groups
  int32_t offset;       // added to outputs
};

/// For vector instructions a group is eight channels, in the order 0, 2, 4, 6,
/// 1, 3, 5, 7 but for the weights:
///
///   int32_t start[8]       of the sums
///   int8_t weights[...]    for each four taps, those of one channel after
///   another int32_t multiplier[8] int32_t shift[8]       to the left, so none
///   is positive
///
/// For DSP instructions there are at least four channels, and a group is
///
///   int32_t channel;    the first one: the last group may begin in the one
///                       before it
///   int32_t start[4];   of the sums
///   int8_t weights[8];  for each pair of taps a and b: of channel 0 and 1 at
///                       a, 0 and 1 at b, then the same of 2 and 3
///   for each channel: int32_t multiplier; uint32_t to: 256 * output channel
///   + bits to shift to the right; channels of the group before go where the
///   last one is stored afterwards

/// What the build knows of a depthwise call for strips, with vector
/// instructions. `along` is the dimension of a strip, `across` the other one.
///
///   int32_t zero;          weights of the next output line begin up to three
///                          bytes before
///   int8_t weights[...]    for each channel, of each group of eight channels
///   0,
///                          2, 4, 6, 1, 3, 5, 7: 4 across for 3 along
///   for each such four channels: int32_t start[4], int32_t multiplier[4],
///   int32_t shift[4]       to the left, so none is positive
struct PackedDepthwiseStrips {
  Axis across;
  Axis along;
  int32_t batch;
  int32_t channels;
  int32_t padding;     // what inputs that do not exist are
  int32_t in_across;   // bytes from an input to the next one
  int32_t in_along;    // the same
  int32_t out_across;  // of outputs
  int32_t out_along;   // of outputs; 0 where `along` has one
  int32_t lines;       // of the output that have one strip
  int32_t pixels;      // the most in a line of these; even if there are more
  int32_t phases;      // columns n, n + stride, n + 2 * stride ... are a phase
  int32_t columns;     // of a phase
  int32_t at[3];       // bytes in the strip, for each column of weights
  int32_t weight_bytes;
};

/// Tensors of a call, from arguments `Tensor input, Tensor header, Tensor
/// weights, Tensor scratch`; without weights if `header` has them.
inline PackedCall packed_call(void (*run)(const PreparedCall& call),
                              const Args& args, bool has_weights) {
  return {{run},
          args.tensor(0).memory,
          args.tensor(1).memory,
          has_weights ? args.tensor(2).memory : nullptr,
          args.tensor(has_weights ? 3 : 2).memory,
          args.tensor(static_cast<int>(args.count()) - 1).memory};
}

/// Runs a kernel for prepared calls on arguments as above, then `*, Tensor(a!)
/// out`.
inline Error run_packed(void (*run)(const PreparedCall& call),
                        const Args& args) {
  run(packed_call(run, args, args.count() == 5));
  return Error::Ok;
}

}  // namespace orch::cortex_m
