// Inner loops of packed convolutions, for three pixels.
#pragma once

#include <stdint.h>

#include "packed_two_pixels.h"
#include "tile_dsp.h"

namespace orch::cortex_m {

// All output channels of three pixels. r0: `x`, inputs as pairs; r1: `w`, pairs
// of channels; r2: `loop`. What belongs to the first pixel is stored last.
using PixelsFn = void(const int32_t* x, const uint8_t* w, const PairLoop* loop);
extern "C" PixelsFn orch_packed_pixels;
#if !ORCH_FAVOUR_SPEED
/// The same for bands: their few pixels make up for more bytes with more steps
/// in a round.
extern "C" PixelsFn orch_packed_band_pixels;
#else
inline constexpr PixelsFn* orch_packed_band_pixels = orch_packed_pixels;
#endif

// Pairs of the inputs of three pixels, one of each pointer. They lie in `rows`
// pieces, `step` apart; if the items of a piece are no whole words, the last
// word begins earlier.
extern "C" void orch_widen_pixels(const int8_t* const* pixels, int32_t items,
                                  int32_t rows, int32_t step, Pair* to);

}  // namespace orch::cortex_m
