// Inner loops of packed kernels with vectors: functions in assembly, as
// compilers do not find that the registers suffice.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "packed.h"

namespace orch::cortex_m {

/// Pixels whose inputs are equally far apart, as are their outputs.
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

/// Pixels of a column, whose windows have three lines.
struct Column {
  int32_t count;  // at least one
  int32_t skip;   // from the sixth line of a block to the next block
  int32_t blocks;
  int32_t channels;
  int32_t y_step;  // bytes, less than 16 K
  int32_t offset;  // added to outputs
};

static_assert(offsetof(PackedPixel, conv.out_channels) == 56 &&
                  offsetof(PackedPixel, conv.depth) == 60 &&
                  offsetof(PackedPixel, conv.offset) == 68 &&
                  offsetof(PackedPixel, multiplier) == 72 &&
                  offsetof(PackedPixel, shift) == 76 &&
                  offsetof(Run, depth) == 12 && offsetof(Run, offset) == 20 &&
                  offsetof(Column, offset) == 20,
              "the assembly knows where things are");

/// Calls `each` for numbers of vectors that have loops of their own, for depths
/// of a multiple of them. Each has lines in
/// orchestrator/method/passes/inventory.csv.
#if ORCH_FAVOUR_SPEED
#define ORCH_UNROLLED(each) each(2) each(3) each(4)
#else
#define ORCH_UNROLLED(each)
#endif

extern "C" {
// All output channels of some pixels, two pixels and four channels at a time.
// An odd last pixel is computed twice.
using PixelLoop = void(const int8_t* x, const uint8_t* tiles, int8_t* y,
                       const Run* run);
PixelLoop orch_packed_pixels;
// The same for at least two pixels of 16 taps: weights stay in registers.
PixelLoop orch_packed_pixels_16;
#define ORCH_DECLARED(vectors) PixelLoop orch_packed_pixels_##vectors;
ORCH_UNROLLED(ORCH_DECLARED)
// All output channels of the first pixel of a run, eight at a time.
PixelLoop orch_packed_one_pixel;

// All output channels of a single pixel, eight at a time, all with one scale;
// `group`: taps with one step.
void orch_packed_pixel(const int8_t* x, const uint8_t* tiles, int8_t* y,
                       const PackedPixel* pixel);
void orch_int4_pixel(const int8_t* x, const uint8_t* tiles, int8_t* y,
                     const PackedPixel* pixel, int32_t group);

// All output channels of some pixels, four pixels and two channels at a time.
// Their windows are six lines: each vector of a line is loaded once for all
// that see it.
using LinesLoop = void(const int8_t* x, const uint8_t* tiles, int8_t* y,
                       const Column* column);
LinesLoop orch_packed_lines;
// The same for an even number of channels, and three times as many blocks as
// `blocks`: if outputs begin at the lowest item, and if not.
LinesLoop orch_packed_lines_3;
LinesLoop orch_packed_lines_3_ties;
}

}  // namespace orch::cortex_m
