// Convolutions whose weights the build packed for cores with DSP or vector
// instructions.
#pragma once

#include <stdint.h>

#include "image.h"
#include "prepared.h"

namespace orch::cortex_m {

/// What the build knows of a call; the packed weights follow. Its source is
/// orchestrator/method/passes/pack_weights.py.
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

/// What follows for DSP instructions, and then tiles.
struct TileLoop {
  int32_t tile_bytes;  // weights of four channels
  int32_t all_bytes;   // of all tiles
  int32_t offset;      // added to outputs
  int32_t multiplier;  // of all channels, or 0
  int32_t shift;       // of all channels, to the right
};

/// A tile of weights is four channels: two pairs of A and B.
///
///   int32_t start[4]        of S0, A0, S1, A1: see below
///   uint32_t weights[...]   for each 8 taps, and of these for each 4: taps 0
///   and
///                           2, then 1 and 3 of pair 0, then those of pair 1;
///                           16 bits each: 256 * b + a
///   PackedScale of A0, B0, A1, B1; if all channels have one scale, the place
///   of
///                each among the four outputs of the tile, a byte
///
/// With x and h = 256 * b + a, S is the sum of x * h. The sum of x * a comes
/// from half as many products: the sum of (x[i] + a[i + 1]) * (x[i + 1] + a[i])
/// is that, and products of two inputs, which are the same for all channels,
/// and of two weights, which `start` takes off. S - A is then 256 * B.
struct PackedScale {
  int32_t multiplier;
  uint32_t to;  // 256 * output channel + bits to shift to the right
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

/// What the build knows of a depthwise call, one output for each channel.
/// Groups of channels follow.
struct PackedDepthwise {
  Axis rows;
  Axis columns;
  int32_t batch;
  int32_t channels;
  int32_t padding;      // what inputs that do not exist are
  int32_t pairs;        // of taps; the last ones may have no weights
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
/// For DSP instructions channels are a multiple of four, and a group is
///
///   int32_t channel;    the first one
///   int32_t start[4];   of the sums
///   int8_t weights[8];  for each pair of taps a and b: of channel 0 and 1 at
///   a,
///                       0 and 1 at b, then the same of 2 and 3
///   PackedScale[4]

/// What the build knows of a depthwise call for strips, with vector
/// instructions. `along` is the dimension of a strip, `across` the other one.
///
///   int32_t zero;
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
  int32_t out_along;   // of outputs
  int32_t lines;       // of the output that have one strip
  int32_t pixels;      // the most in a line of these; even if there are more
  int32_t phases;      // columns n, n + stride, n + 2 * stride ... are a phase
  int32_t columns;     // of a phase
  int32_t at[3];       // bytes in the strip, for each column of weights
  int32_t weight_bytes;
  int32_t
      zero;  // weights of the next output line begin up to three bytes before
};

/// Scales `sum`, which is twice the sum, stores it at r8 and an output channel,
/// and adds r9 before. The product is rounded up at ties. Then ties are rounded
/// away from zero: what a shift drops last is its carry, and a negative number
/// is made smaller by one before.
#define ORCH_SCALE_MACRO                    \
  ".macro orch_scale sum, multiplier, to\n" \
  "  smmulr \\sum, \\sum, \\multiplier\n"   \
  "  adds \\sum, \\sum, \\sum, asr #31\n"   \
  "  asrs \\sum, \\to\n"                    \
  "  adc \\sum, r9\n"                       \
  "  ssat \\sum, #8, \\sum\n"               \
  "  lsr \\to, \\to, #8\n"                  \
  "  strb \\sum, [r8, \\to]\n"              \
  ".endm\n"

/// Runs a kernel for prepared calls on arguments `Tensor input, Tensor packed,
/// Tensor scratch, *, Tensor(a!) out`.
inline Error run_packed(void (*run)(const PreparedCall& call),
                        const Args& args) {
  run(PackedCall{{run},
                 args.tensor(0).memory,
                 args.tensor(1).memory,
                 args.tensor(2).memory,
                 args.tensor(3).memory});
  return Error::Ok;
}

}  // namespace orch::cortex_m
