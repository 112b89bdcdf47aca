// Weights of 4 bits, two in a byte, that the build packed.
//
// A weight is a number from -8 to 7 times a step from 1 to 16, which a channel
// has, or each `group` taps of it: an int8 number again. So the kernels give
// the bits of those for int8 weights. Formats are written by
// orchestrator/method/passes/packing/int4.py.
#pragma once

#include <stdint.h>

#include "packed.h"

namespace orch::cortex_m {

/// What weights begin with; then come tiles of channels.
struct Int4Weights {
  int32_t block;  // tiles whose weights are int8 at a time, in scratch memory
  int32_t group;  // taps with one step, a multiple of 32, or all of them
};

/// For plain C++ a tile is two channels, a multiple of four bytes:
///
///   int32_t start[2]         of the sums
///   int32_t multiplier[2]
///   int8_t shift[2]          to the left, so not positive
///   for each group: uint8_t step[2]
///   uint8_t weights[taps]    of channel 0, and 16 times that of channel 1
///
/// Starts have no part of the input offset.

/// For DSP instructions, for three pixels at once, a tile is a pair of
/// channels, A and B; packed_dsp.h has what becomes of it.
struct Int4Pair {
  int32_t start[2];  // of the sums
  int32_t multiplier[2];
  uint16_t to[2];    // output channels
  uint8_t shift[2];  // to the right
  uint8_t step[2];   // of the first group
};
/// For each four taps follows a word: from the lowest bits on, taps 0 and 1 of
/// A and B, then at bit 16 taps 2 and 3; each number is larger by 8. In front
/// of those of more groups are steps of A and B, in a word.

/// For DSP instructions, for single pixels, a tile is four channels:
///
///   int32_t start[4]
///   for each group: uint8_t step[4], and for each two taps of four
///   uint32_t weights: taps 0 and 2, then 1 and 3; 16 bits each, from the
///   lowest bits on channels 0 to 3, all but the last one larger by 8
///
/// Groups have 256 taps at most: those with one step are several.

/// What the build knows of such a call.
struct Int4Matrix {
  int32_t pixels;
  int32_t items;  // of a pixel
  int32_t depth;  // the same, up to the next whole step of the loop
  int32_t out_channels;
  int32_t multiplier;
  int32_t right;   // bits to shift
  int32_t offset;  // added to outputs
};

inline int32_t outputs_of(const Int4Matrix& matrix) {
  return matrix.pixels * matrix.out_channels;
}

/// For vector instructions a tile is four channels:
///
///   int32_t start[4]         of the sums
///   int32_t multiplier[4]
///   int8_t shift[4]          to the left, so none is positive
///   for each group: uint8_t step[4], and for each 16 taps 16 bytes of channels
///   0 and 1, and of 2 and 3; the second one has the higher bits
///
/// Of a single pixel it is eight, 0, 2, 4, 6, 1, 3, 5, 7, with starts, steps
/// and weights only.

}  // namespace orch::cortex_m
