// Weights that the build packed for DSP instructions: what it knows of a call,
// and scaling.
//
// Scaling. Two roundings, of the product and of the shift, are one: with a
// scale of m * 2^-(31 + n) an output is
//
//   (sum * m + 2^30 + 2^(30 + n) + offset * 2^(31 + n)) >> (31 + n)
//
// less 2^31 in the parentheses for negative sums, whose ties go down. They need
// not go anywhere where the offset is the lowest item. If n is 0, only the
// first rounding is there. The instruction SMMLA drops 32 bits: sums are taken
// times a power of two before, and all of the rest is `add`. The build makes
// multipliers as large as they can be.
#pragma once

#include <stdint.h>

#include "packed.h"

namespace orch::cortex_m {

/// From a sum to an output. Known to the assembly.
struct PackedScale {
  int32_t multiplier;
  int32_t add;
  uint32_t to;  // 256 * output channel + bits to shift
};

/// What the build knows of a call for three pixels at once. Pairs of channels,
/// A and B, follow:
///
///   int32_t start[2]        of S and of the sum of A
///   uint32_t weights[...]   for each four taps: taps 0 and 2, then 1 and 3;
///                           16 bits each: 256 * b + a
///   PackedScale of A, of B
///
/// Where the items of a piece are no whole words, the last four taps of it have
/// some that were there before, without weights.
///
/// S is the sum of inputs and such numbers, S - A is then 256 * B. The sum of A
/// is shifted to the left, and by 13 to the right after the product; that of B
/// to the right. A channel without a partner is paired with an empty one, whose
/// output goes where the real one is stored afterwards.
struct PackedPairs {
  PackedConvolution conv;
  int32_t weight_bytes;    // of a pair of channels
  int32_t all_bytes;       // of all pairs
  int32_t patch_rows;      // pieces of a window that lie side by side
  int32_t patch_items;     // of each; with the last word at their end
  uint32_t inner_columns;  // where windows may begin, to lie in the image
  int32_t ties;            // 1 if those of negative sums go down, or 0
};

/// What the build knows of a call for single pixels, whose inputs lie side by
/// side, with one scale. Tiles of four channels, two pairs of A and B, follow:
///
///   int32_t start[4]        of S0, A0, S1, A1: see below
///   uint32_t weights[...]   for each 8 taps, and of these for each 4: taps 0
///                           and 2, then 1 and 3 of pair 0, then those of pair
///                           1; 16 bits each: 256 * b + a
///   uint8_t places[4]       where A0, B0, A1 and B1 go, from the first one on
///
/// With x and h = 256 * b + a, S is the sum of x * h. The sum of x * a comes
/// from half as many products: the sum of (x[i] + a[i + 1]) * (x[i + 1] + a[i])
/// is that, and products of two inputs, which are the same for all channels,
/// and of two weights, which `start` takes off. S - A is then 256 * B.
struct PackedMatrix {
  int32_t pixels;
  int32_t items;  // of a pixel
  int32_t depth;  // the same, up to the next whole step of the loop
  int32_t out_channels;
  // Known to the assembly from here on.
  int32_t tile_bytes;  // weights of four channels
  int32_t all_bytes;   // of all tiles
  int32_t multiplier;
  int32_t a_add;
  int32_t a_shift;  // to the left
  int32_t b_add;
  int32_t b_shift;  // to the right
  int32_t a_ties;
  int32_t b_ties;
};

/// A channel of a depthwise call of 3 x 3. Outputs have the lowest item as
/// their offset, so that no ties matter. Sums are shifted to the left by their
/// weights, and by 11 to the right after the product.
struct PackedChannel {
  int32_t start;  // shifted
  int32_t multiplier;
  int16_t added;  // without the offset
  int8_t left;
  int8_t weights[9];  // by row and column: 22; 00 01 10 11; 02 20 12 21
};

}  // namespace orch::cortex_m
