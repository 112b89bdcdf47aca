#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "packed_windows_dsp.h"
#include "tile_dsp.h"
#include "unroll.h"

namespace orch::cortex_m {
namespace {

/// Channels that are computed together, and words of each in the scratch memory
/// of a call.
constexpr int32_t kChannels = 4;
constexpr int32_t kChannelWords = 9;
/// Words of a column: for each channel a pair of the two upper rows; then one
/// of the two lower ones, or of the only one an input in the lower half.
constexpr int32_t kColumnWords = 2 * kChannels;
constexpr int32_t kWindow = 3;

/// Channels in front of the `c`-th that are loaded with it: the last word of a
/// pixel begins earlier. Calls have at least a word of channels.
ORCH_ALWAYS_INLINE int32_t loaded_before(int32_t c, int32_t channels) {
  return c + kChannels > channels ? c + kChannels - channels : 0;
}

/// The lower halves of two numbers as a pair.
ORCH_ALWAYS_INLINE Pair pair_of(int32_t low, int32_t high) {
  Pair pair;
  asm("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(low), "r"(high));
  return pair;
}

/// Channels as the assembly reads them.
ORCH_HOT void expand(const PackedChannel* channel, const PackedChannel* end,
                     int32_t* to) {
  constexpr int32_t kOffset = INT8_MIN * (1 << 11);
  for (; channel != end; ++channel) {
    to[0] = channel->multiplier;
    to[1] = channel->added + kOffset;
    to += 2;
    const int8_t* w = channel->weights;
    const int32_t factor = 1 << channel->left;
    unrolled<3>([&](auto column) {
      // Where its three weights are.
      constexpr int32_t kAt[3][3] = {{1, 3, 6}, {2, 4, 8}, {5, 7, 0}};
      const int32_t top = w[kAt[column][0]] * factor;
      const int32_t middle = w[kAt[column][1]] * factor;
      to[2 * column] = pair_of(top, middle);
      to[2 * column + 1] = pair_of(middle, w[kAt[column][2]] * factor);
    });
    to[6] = channel->start;
    to += 7;
  }
}

/// A band, some columns of outputs at a time.
template <int32_t kRows, int32_t kStride>
ORCH_ALWAYS_INLINE void run_band(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const PackedDepthwise& conv =
      *static_cast<const PackedDepthwise*>(call.header);
  const int32_t channels = conv.channels;
  Pair* const pairs = static_cast<Pair*>(call.scratch);
  const uint32_t padding = static_cast<uint8_t>(conv.padding) * 0x01010101U;
  const Pair two = even(padding);
  const PackedChannel* const w =
      static_cast<const PackedChannel*>(call.weights);
  const int32_t line = conv.columns.in * channels;
  RowsCall<kRows> rows;
  rows.offset = INT8_MIN * (1 << 11);
  rows.channels = channels;
  rows.below = conv.rows.out > 1 ? conv.columns.out * channels : 0;
  rows.x_end = pairs + kColumnWords;
  int8_t* y = static_cast<int8_t*>(call.out);
  int32_t left = conv.columns.out;
  // Of the window that is next.
  int32_t begin = -conv.columns.padding;
  do {
    const int32_t count = left < conv.pairs ? left : conv.pairs;
    const int32_t end = begin + (count - 1) * kStride + kWindow;
    const int32_t first = begin < 0 ? 0 : begin;
    const int32_t last = end < conv.columns.in ? end : conv.columns.in;
    rows.image = pairs + (first - begin) * kColumnWords;
    rows.image_end = pairs + (last - begin) * kColumnWords;
    ORCH_FEW_ROUNDS
    for (Pair* to = pairs; to != rows.image; ++to) *to = two;
    Pair* const pairs_end = pairs + (end - begin) * kColumnWords;
    ORCH_FEW_ROUNDS
    for (Pair* to = rows.image_end; to != pairs_end; ++to) *to = two;
    // Those that are no word come last.
    for (int32_t c = 0; c < channels;) {
      const int32_t skip = loaded_before(c, channels);
      rows.w = w + c;
      rows.x = pairs + 2 * skip;
      rows.y = y + c;
      rows.count = count << 8;
      rows.line = line;
      const int8_t* from = static_cast<const int8_t*>(call.input) -
                           conv.rows.padding * line + first * channels + c -
                           skip;
      ORCH_FEW_ROUNDS
      for (int32_t i = 0; i < kRows; ++i) {
        const bool inside = static_cast<uint32_t>(i - conv.rows.padding) <
                            static_cast<uint32_t>(conv.rows.in);
        rows.rows[i] =
            inside ? from : reinterpret_cast<const int8_t*>(&padding);
        rows.step[i] = inside ? channels : 0;
        rows.next[i] = inside ? kChannels : 0;
        if (!inside) rows.line = 0;
        from += line;
      }
      c = skip == 0 ? channels & -kChannels : channels;
      rows.w_end = w + c;
      if constexpr (kRows != kWindow) {
        orch_packed_both_rows(&rows);
      } else if constexpr (kStride == 1) {
        orch_packed_one_row(&rows);
      } else {
        orch_packed_one_row_by_two(&rows);
      }
    }
    y += count * channels;
    begin += count * kStride;
    left -= count;
  } while (left != 0);
}

}  // namespace

// What the build makes of cortex_m::quantized_depthwise_conv2d.out: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// Windows of 3 x 3 that move by one, two rows of them at once, or by two.
// `header` is a PackedDepthwise, `weights` a PackedChannel for each channel;
// `scratch` holds four channels of weights, and of four input rows. The build
// has checked everything.
void packed_depthwise_3x3(const PreparedCall& call) {
  const PackedCall& prepared = static_cast<const PackedCall&>(call);
  const int8_t* image = static_cast<const int8_t*>(prepared.input);
  uint8_t* scratch = static_cast<uint8_t*>(prepared.scratch);
  int8_t* y = static_cast<int8_t*>(prepared.out);
  const PackedDepthwise& conv =
      *static_cast<const PackedDepthwise*>(prepared.header);
  int32_t* const weights = reinterpret_cast<int32_t*>(scratch);
  Pair* const pairs =
      reinterpret_cast<Pair*>(weights + kChannels * kChannelWords);
  const int32_t margin = conv.columns.padding * kColumnWords;
  // Windows may end behind the image, by as much as they begin in front of it
  // or not, or before its end.
  const int32_t words =
      ((conv.columns.out - 1) * conv.columns.stride + 3) * kColumnWords;
  const Pair two = pair_of(conv.padding, conv.padding);
  for (int32_t i = 0; i < margin; ++i) pairs[i] = two;
  for (int32_t i = margin + conv.columns.in * kColumnWords; i < words; ++i) {
    pairs[i] = two;
  }
  const uint32_t padding = static_cast<uint8_t>(conv.padding) * 0x01010101U;
  const int32_t line = conv.columns.in * conv.channels;
  const int32_t out_line = conv.columns.out * conv.channels;
  const int32_t stride = conv.columns.stride;
  const int32_t outputs = stride == 1 ? 2 : 1;  // rows at once
  RowLoop loop = {conv.columns.out * kColumnWords * 4 * stride, 0,
                  conv.channels, pairs + kColumnWords};
  for (int32_t n = 0; n < conv.batch; ++n) {
    const PackedChannel* const channels =
        static_cast<const PackedChannel*>(prepared.weights);
    for (int32_t c = 0; c < conv.channels; c += kChannels) {
      const int32_t skip = loaded_before(c, conv.channels);
      const int8_t* const from = image + c - skip;
      expand(channels + c, channels + c + kChannels - skip, weights);
      int32_t row = -conv.rows.padding;
      const Pair* const x = pairs + 2 * skip;
      int8_t* to = y + c;
      int32_t slot = 0;
      for (int32_t h = -outputs; h < conv.rows.out; h += outputs) {
        Row two_rows[2];
        for (Row& of : two_rows) {
          of = {reinterpret_cast<const int8_t*>(&padding), 0};
          if (static_cast<uint32_t>(row) <
              static_cast<uint32_t>(conv.rows.in)) {
            of = {from + row * line, conv.channels};
          }
          ++row;
        }
        Pair* const first = pairs + margin + slot;
        orch_pair_rows(two_rows, first, first + conv.columns.in * kColumnWords);
        slot ^= 1;
        if (h < 0) continue;
        loop.line = h + 1 < conv.rows.out ? out_line : 0;
        if (stride == 1) {
          if (slot == 0) {
            orch_packed_two_rows(x, weights, to, &loop);
          } else {
            orch_packed_two_rows_swapped(x, weights, to, &loop);
          }
        } else {
          if (slot == 0) {
            orch_packed_row(x, weights, to, &loop);
          } else {
            orch_packed_row_swapped(x, weights, to, &loop);
          }
        }
        to += outputs * out_line;
      }
    }
    image += conv.rows.in * line;
    y += conv.rows.out * out_line;
  }
}

ORCH_PACKED_FORMS(PackedDepthwise, packed_depthwise_3x3,
                  limited_packed_depthwise_3x3)

// Prepared: what packed_depthwise_3x3 does, for a band of one row. Both have
// the same tensors, but `scratch` holds pairs of inputs alone: of the columns
// that `pairs` outputs need.
ORCH_HOT void packed_depthwise_row(const PreparedCall& call) {
  run_band<kWindow, 1>(call);
}

// The same for windows that move by two.
ORCH_HOT void packed_depthwise_row_by_two(const PreparedCall& call) {
  run_band<kWindow, 2>(call);
}

// The same as the first one for a band of one or two rows.
ORCH_HOT void packed_depthwise_two_rows(const PreparedCall& call) {
  run_band<kWindow + 1, 1>(call);
}

ORCH_LIMITED_BAND(PackedDepthwise, packed_depthwise_row,
                  limited_packed_depthwise_row)

ORCH_LIMITED_BAND(PackedDepthwise, packed_depthwise_row_by_two,
                  limited_packed_depthwise_row_by_two)

ORCH_LIMITED_BAND(PackedDepthwise, packed_depthwise_two_rows,
                  limited_packed_depthwise_two_rows)

}  // namespace orch::cortex_m

#endif
