// Convolutions of two pixels at once.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "packed.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "packed_loops_dsp.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

constexpr int32_t kTwo = 2;

/// Pairs of the inputs of a window, as those of one of two pixels; inputs
/// beside the image are padding.
ORCH_HOT void widen_window(const PackedConvolution& conv, const int8_t* image,
                           int32_t row, int32_t first_column, Pair* to) {
  const int32_t channels = conv.in_channels;
  const uint32_t padding = static_cast<uint8_t>(conv.padding) * 0x01010101U;
  for (int32_t h = conv.rows.kernel; h > 0; --h) {
    int32_t column = first_column;
    for (int32_t w = conv.columns.kernel; w > 0; --w) {
      const int8_t* from = nullptr;
      if (static_cast<uint32_t>(row) < static_cast<uint32_t>(conv.rows.in) &&
          static_cast<uint32_t>(column) <
              static_cast<uint32_t>(conv.columns.in)) {
        from = image + (row * conv.columns.in + column) * channels;
      }
      ORCH_FEW_ROUNDS
      for (int32_t i = 0; i < channels; i += 4) {
        const uint32_t word = from != nullptr ? load4(from + i) : padding;
        to[0] = even(word);
        to[kTwo] = odd(word);
        to += 2 * kTwo;
      }
      column += conv.columns.dilation;
    }
    row += conv.rows.dilation;
  }
}

/// The same of two windows, `step` apart in each of their pieces.
void widen_two(const PackedPairs& call, const int8_t* first,
               const int8_t* second, int32_t step, Pair* to) {
  const int32_t items = call.patch_items;
  for (int32_t piece = call.patch_rows; piece > 0; --piece) {
    orch_widen_two_pixels(first, second, first + items, to);
    first += step;
    second += step;
    to += items;
  }
}

}  // namespace

// Prepared: what packed_conv2d does, for bands where memory is scarce: two
// pixels at once. `scratch` holds their pairs, and nothing else. Channels are a
// multiple of four.
ORCH_HOT void packed_conv2d_few(const PreparedCall& prepared) {
  const PackedCall& packed = static_cast<const PackedCall&>(prepared);
  const PackedPairs& call = *static_cast<const PackedPairs*>(packed.header);
  const PackedConvolution& conv = call.conv;
  const int8_t* image = static_cast<const int8_t*>(packed.input);
  int8_t* y = static_cast<int8_t*>(packed.out);
  Pair* const pairs = static_cast<Pair*>(packed.scratch);
  PairLoop loop = {call.weight_bytes, call.all_bytes, call.ties, {}};
  const int32_t line = conv.columns.in * conv.in_channels;
  const int32_t step = conv.rows.dilation * line;
  const int32_t reach = (conv.rows.kernel - 1) * conv.rows.dilation;
  int32_t left = conv.rows.out * conv.columns.out;
  int32_t filled = 0;
  const int8_t* inside[kTwo];  // whole windows in the image, or null
  int32_t columns[kTwo];
  int32_t rows[kTwo];
  int32_t row = -conv.rows.padding;
  for (int32_t h = conv.rows.out; h > 0; --h) {
    const bool in_rows = row >= 0 && row + reach < conv.rows.in;
    int32_t column = -conv.columns.padding;
    for (int32_t v = conv.columns.out; v > 0; --v) {
      const int8_t* const from = image + row * line + column * conv.in_channels;
      const bool is_inside = in_rows && in_words(from, step) &&
                             static_cast<uint32_t>(column) < call.inner_columns;
      inside[filled] = is_inside ? from : nullptr;
      rows[filled] = row;
      columns[filled] = column;
      loop.y[filled] = y;
      column += conv.columns.stride;
      y += conv.out_channels;
      --left;
      if (++filled != kTwo && left != 0) continue;
      // A last one is its own partner: what is there as the other one's is
      // stored first.
      if (filled == 1) {
        inside[1] = inside[0];
        loop.y[1] = loop.y[0];
      }
      if (inside[0] != nullptr && inside[1] != nullptr) {
        widen_two(call, inside[0], inside[1], step, pairs);
      } else {
        for (int32_t i = 0; i < filled; ++i) {
          widen_window(conv, image, rows[i], columns[i], pairs + i);
        }
      }
      filled = 0;
      orch_packed_two_pixels(pairs, static_cast<const uint8_t*>(packed.weights),
                             &loop);
    }
    row += conv.rows.stride;
  }
}

ORCH_LIMITED_BAND(PackedPairs, packed_conv2d_few, limited_packed_conv2d_few)

}  // namespace orch::cortex_m

#endif
