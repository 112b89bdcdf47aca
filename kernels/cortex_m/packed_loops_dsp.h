// Inner loops of packed convolutions and matrix products: functions in
// assembly, as compilers do not find that the registers suffice.
#pragma once

#include <stdint.h>

#include "tile_dsp.h"

namespace orch::cortex_m {

/// Pixels that are computed at once.
inline constexpr int32_t kPixels = 3;

/// What loops over pairs of channels take besides pointers. Known to the
/// assembly.
struct PairLoop {
  int32_t weight_bytes;  // of a pair of channels
  int32_t all_bytes;     // of all pairs
  int32_t ties;          // as in PackedPairs
  int8_t* y[kPixels];
};

// All output channels of three pixels. `x`: inputs as pairs; `w`: pairs of
// channels. What belongs to the first pixel is stored last.
using PixelsFn = void(const int32_t* x, const uint8_t* w, const PairLoop* loop);
extern "C" PixelsFn orch_packed_pixels;
#if !ORCH_FAVOUR_SPEED
/// The same for bands: their few pixels make up for more bytes with more steps
/// in a round.
extern "C" PixelsFn orch_packed_band_pixels;
#else
inline constexpr PixelsFn* orch_packed_band_pixels = orch_packed_pixels;
#endif
/// The same for two pixels, which take less than three.
extern "C" PixelsFn orch_packed_two_pixels;

// All output channels of a pixel. `x`: the sum of products of two inputs, then
// inputs as pairs; `w`: tiles of weights; `loop` begins at `tile_bytes` of a
// PackedMatrix.
extern "C" void orch_packed_tiles(const int32_t* x, const uint8_t* w, int8_t* y,
                                  const int32_t* loop);

// The same of inputs as they are, whole words, which become pairs in each tile
// anew; `sum` is that of products of two.
extern "C" void orch_packed_tiles_few(const int8_t* x, const uint8_t* w,
                                      int8_t* y, const int32_t* loop,
                                      int32_t sum);

// Pairs of the inputs of three pixels, one of each pointer. They lie in `rows`
// pieces, `step` apart; if the items of a piece are no whole words, the last
// word begins earlier.
extern "C" void orch_widen_pixels(const int8_t* const* pixels, int32_t items,
                                  int32_t rows, int32_t step, Pair* to);

// Pairs of the inputs of two pixels, up to `end` of the first one: whole words
// that lie side by side.
extern "C" void orch_widen_two_pixels(const int8_t* first, const int8_t* second,
                                      const int8_t* end, Pair* to);

// Moves `from` and what follows, up to `end`, to `to`, which lies before it: a
// multiple of six pairs.
extern "C" void orch_move_pairs(const Pair* from, Pair* to, const Pair* end);

}  // namespace orch::cortex_m
