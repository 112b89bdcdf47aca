// The inputs of an output pixel, side by side.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/kernel.h"
#include "packed.h"
#include "tile_dsp.h"

namespace orch::cortex_m {

/// Copies `rows` pieces of `items` each, `from_step` and `to_step` items apart.
ORCH_ALWAYS_INLINE void copy_rows(const int8_t* from, int32_t from_step,
                                  int32_t items, int32_t rows, int8_t* to,
                                  int32_t to_step) {
  if (rows <= 0) return;
  ORCH_FEW_ROUNDS
  do {
    int32_t i = 0;
    ORCH_FEW_ROUNDS
    for (; i <= items - 4; i += 4) {
      const uint32_t word = load4(from + i);
      memcpy(to + i, &word, sizeof word);
    }
    ORCH_FEW_ROUNDS
    for (; i < items; ++i) to[i] = from[i];
    from += from_step;
    to += to_step;
  } while (--rows != 0);
}

/// Fills whole words. memset of some toolchains goes byte by byte.
ORCH_ALWAYS_INLINE void fill_words(int8_t* to, int32_t item, int32_t bytes) {
  const uint32_t word = static_cast<uint8_t>(item) * 0x01010101U;
  ORCH_FEW_ROUNDS
  for (int32_t i = 0; i < bytes; i += 4) memcpy(to + i, &word, sizeof word);
}

/// Copies the inputs of a pixel, row by row, to `to`; taps outside of the image
/// are padding. Those beyond the last one have no weights: they may be
/// anything.
ORCH_HOT void gather(const PackedConvolution& conv, const int8_t* image,
                     const Taps& rows, const Taps& columns, int8_t* to) {
  const int32_t channels = conv.in_channels;
  const int32_t width = conv.columns.kernel * channels;
  const int32_t line = conv.columns.in * channels;
  if (rows.count < conv.rows.kernel || columns.count < conv.columns.kernel) {
    memset(to, conv.padding, static_cast<size_t>(conv.depth));
  }
  to += rows.first * width + columns.first * channels;
  image += rows.in * line + columns.in * channels;
  const int32_t step = conv.rows.dilation * line;
  if (conv.columns.dilation == 1) {
    copy_rows(image, step, columns.count * channels, rows.count, to, width);
    return;
  }
  ORCH_FEW_ROUNDS
  for (int32_t h = 0; h < rows.count; ++h) {
    copy_rows(image, conv.columns.dilation * channels, channels, columns.count,
              to, channels);
    image += step;
    to += width;
  }
}

}  // namespace orch::cortex_m
