// Sums of products for a tile: several pixels times several output channels, so
// that each item that is loaded serves several products.
//
// Every variant offers the same:
//   kWidePixels, kWideChannels   size of the tile that most of an image is
//   kNarrowChannels              size of the tile of a single pixel
//   accumulate<P, C>(run, sums)  adds a run's products
#pragma once

#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#else
#include "tile_scalar.h"
#endif
