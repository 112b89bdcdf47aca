#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed.h"
#include "packed_dsp.h"
#include "packed_gather.h"
#include "packed_limits.h"
#include "packed_loops_dsp.h"
#include "tile_dsp.h"
#include "unroll.h"
#include "util/check.h"

namespace orch::cortex_m {
namespace {

/// Pairs of the inputs of one of kOf pixels. They lie in `rows` pieces; if the
/// items of a piece are no whole words, the last word begins earlier.
template <int32_t kOf = kPixels>
ORCH_HOT void widen_pixel(const int8_t* from, int32_t items, int32_t rows,
                          int32_t step, Pair* to) {
  const int32_t skip = step - items;
  for (; rows > 0; --rows) {
    const int8_t* const last = from + items - 4;
    for (;;) {
      const uint32_t word = load4(from);
      from += 4;
      to[0] = even(word);
      to[kOf] = odd(word);
      to += 2 * kOf;
      const int32_t over = from - last;
      if (over <= 0) continue;
      if (over == 4) break;
      from -= over;
    }
    from += skip;
  }
}

/// Pixels that are computed next, of those that are left, where there may be
/// two.
int32_t next_pixels(int32_t left) {
  if (left == kPixels || left > 2 * 2) return kPixels;
  return left == 1 ? 1 : 2;
}

#if !ORCH_FAVOUR_SPEED
/// Pairs of one or two pixels, of those that have pointers.
ORCH_HOT void widen_two(const int8_t* const* pixels, const PackedPairs& call,
                        int32_t step, Pair* to) {
  const int32_t items = call.patch_items;
  if (call.patch_rows == 1 && pixels[0] != nullptr && pixels[1] != nullptr &&
      in_words(pixels[0], items) && in_words(pixels[1], 0) && items % 4 == 0) {
    orch_widen_two_pixels(pixels[0], pixels[1], pixels[0] + items, to);
    return;
  }
  ORCH_FEW_ROUNDS
  for (int32_t i = 0; i < 2; ++i) {
    if (pixels[i] == nullptr) continue;
    widen_pixel<2>(pixels[i], items, call.patch_rows, step, to + i);
  }
}

/// Whether pixels are their own windows, and side by side in whole words.
bool is_line(const PackedPairs& call, const int8_t* image) {
  const PackedConvolution& conv = call.conv;
  return conv.batch == 1 && conv.rows.out == 1 && conv.rows.in == 1 &&
         call.patch_rows == 1 && call.patch_items == conv.in_channels &&
         conv.columns.stride == 1 &&
         static_cast<uint32_t>(conv.columns.out) <= call.inner_columns &&
         conv.in_channels % 4 == 0 && in_words(image, 0);
}

/// A band of such pixels.
ORCH_HOT void compute_line(const PackedCall& prepared,
                           const PackedPairs& call) {
  const int32_t channels = call.conv.in_channels;
  const int32_t outputs = call.conv.out_channels;
  const int8_t* x = static_cast<const int8_t*>(prepared.input);
  int8_t* y = static_cast<int8_t*>(prepared.out);
  const uint8_t* const w = static_cast<const uint8_t*>(prepared.weights);
  Pair* const pairs = static_cast<Pair*>(prepared.scratch);
  PairLoop loop = {call.weight_bytes, call.all_bytes, call.ties, {}};
  int32_t left = call.conv.columns.out;
  do {
    const int32_t count = next_pixels(left);
    left -= count;
    // Where there is one, it is the second one, too.
    const int8_t* const next = count == 1 ? x : x + channels;
    loop.y[0] = y;
    loop.y[1] = count == 1 ? y : y + outputs;
    if (count != kPixels) {
      orch_widen_two_pixels(x, next, x + channels, pairs);
      orch_packed_two_pixels(pairs, w, &loop);
    } else {
      loop.y[2] = y + 2 * outputs;
      const int8_t* const pixels[kPixels] = {x, next, next + channels};
      orch_widen_pixels(pixels, channels, 1, 0, pairs);
      orch_packed_band_pixels(pairs, w, &loop);
    }
    x += count * channels;
    y += count * outputs;
  } while (left != 0);
}

/// Three pixels after the other, from line to line.
template <bool kTwo>
ORCH_HOT void run(const PackedCall& prepared) {
  const int8_t* image = static_cast<const int8_t*>(prepared.input);
  uint8_t* scratch = static_cast<uint8_t*>(prepared.scratch);
  int8_t* y = static_cast<int8_t*>(prepared.out);
  const PackedPairs& call = *static_cast<const PackedPairs*>(prepared.header);
  if (kTwo && is_line(call, image)) {
    compute_line(prepared, call);
    return;
  }
  const PackedConvolution& conv = call.conv;
  PairLoop loop = {call.weight_bytes, call.all_bytes, call.ties, {}};
  Pair* const pairs = reinterpret_cast<Pair*>(scratch);
  int8_t* const patch = reinterpret_cast<int8_t*>(
      scratch + 2 * static_cast<uint32_t>(kPixels * conv.depth));
  const int32_t line = conv.columns.in * conv.in_channels;
  int32_t left = conv.batch * conv.rows.out * conv.columns.out;
  int32_t count = kTwo ? next_pixels(left) : left < kPixels ? 1 : kPixels;
  int32_t filled = 0;
  const int8_t* inside[kPixels] = {};  // those not yet widened
  const int32_t step = conv.rows.dilation * line;
  const int32_t words = step | call.patch_items;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      const bool in_rows = rows.count == conv.rows.kernel;
      int32_t column = -conv.columns.padding;
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        // Of two pixels at the end the last one is first, so that the third
        // one is the one before them, whose inputs are still there.
        const int32_t slot = count == 2 && !kTwo ? 1 - filled : filled;
        if (in_rows && static_cast<uint32_t>(column) < call.inner_columns) {
          inside[slot] = image + rows.in * line + column * conv.in_channels;
        } else {
          gather(conv, image, rows, taps_at(conv.columns, v), patch);
          auto* const widen =
              kTwo && count != kPixels ? widen_pixel<2> : widen_pixel<>;
          widen(patch, call.patch_items, call.patch_rows, call.patch_items,
                pairs + slot);
        }
        column += conv.columns.stride;
        if (++filled != count) continue;
        filled = 0;
        if constexpr (kTwo) {
          if (count != kPixels) {
            widen_two(inside, call, step, pairs);
            for (const int8_t*& pixel : inside) pixel = nullptr;
            loop.y[0] = y;
            loop.y[1] = count == 1 ? y : y + conv.out_channels;
            orch_packed_two_pixels(
                pairs, static_cast<const uint8_t*>(prepared.weights), &loop);
            y += count * conv.out_channels;
            left -= count;
            count = next_pixels(left);
            continue;
          }
        }
        if (inside[0] != nullptr && inside[1] != nullptr &&
            inside[2] != nullptr && in_words(inside[0], words) &&
            in_words(inside[1], 0) && in_words(inside[2], 0)) {
          orch_widen_pixels(inside, call.patch_items, call.patch_rows, step,
                            pairs);
        } else {
          for (int32_t i = 0; i < kPixels; ++i) {
            if (inside[i] == nullptr) continue;
            widen_pixel(inside[i], call.patch_items, call.patch_rows, step,
                        pairs + i);
          }
        }
        for (const int8_t*& pixel : inside) pixel = nullptr;
        int32_t next = conv.out_channels;
        if (count == 2) next = -next;
        if (count == 1) next = 0;
        loop.y[0] = count == 2 ? y + conv.out_channels : y;
        loop.y[1] = loop.y[0] + next;
        loop.y[2] = loop.y[1] + next;
        auto* const multiply =
            kTwo ? orch_packed_band_pixels : orch_packed_pixels;
        multiply(pairs, static_cast<const uint8_t*>(prepared.weights), &loop);
        y += count * conv.out_channels;
        left -= count;
        if constexpr (kTwo) {
          count = next_pixels(left);
        } else if (left < count) {
          count = count == kPixels ? left : 1;
        }
      }
    }
    image += conv.rows.in * line;
  }
}
#else
/// A call and where it is.
struct Pixels {
  const PackedPairs& call;
  const uint8_t* weights;
  Pair* pairs;          // of the inputs of three pixels
  int8_t* patch;        // inputs that do not lie side by side
  int32_t patch_step;   // from those of a pixel to the next one's, or 0
  int32_t piece_pairs;  // of a piece of three pixels
  bool by_rows;         // a piece is a row of a window
  const int8_t* image;
  int8_t* y;
  PairLoop loop;
};

/// Where the window of a pixel begins, which may be outside of the image.
struct Window {
  int32_t row;
  Taps columns;
  bool inside;  // all columns are in the image, side by side
};

Window window_at(const Pixels& at, int32_t row, int32_t column) {
  return {row, taps_from(at.call.conv.columns, column),
          static_cast<uint32_t>(column) < at.call.inner_columns};
}

/// Copies a piece of inputs that do not lie side by side.
ORCH_HOT void gather_piece(const Pixels& at, const Window& window, int32_t row,
                           int8_t* to) {
  const PackedConvolution& conv = at.call.conv;
  if (!at.by_rows) {
    gather(conv, at.image, taps_from(conv.rows, row), window.columns, to);
    return;
  }
  const int32_t items = at.call.patch_items;
  if (static_cast<uint32_t>(row) >= static_cast<uint32_t>(conv.rows.in)) {
    fill_words(to, conv.padding, items);
    return;
  }
  const Taps& columns = window.columns;
  const int32_t channels = conv.in_channels;
  const int32_t first = columns.first * channels;
  const int32_t count = columns.count * channels;
  // Words, of which the copy replaces what is not padding.
  const int32_t rest = (first + count) & ~3;
  fill_words(to, conv.padding, first);
  fill_words(to + rest, conv.padding, items - rest);
  const int32_t pixel = row * conv.columns.in + columns.in;
  copy_rows(at.image + pixel * channels, 0, count, 1, to + first, 0);
}

/// Widens a piece of the inputs of three pixels.
ORCH_ALWAYS_INLINE void widen(const int8_t* const (&from)[kPixels],
                              int32_t items, Pair* to) {
  if (in_words(from[0], 0) && in_words(from[1], 0) && in_words(from[2], 0)) {
    orch_widen_pixels(from, items, 1, 0, to);
    return;
  }
  for (int32_t i = 0; i < kPixels; ++i) {
    widen_pixel(from[i], items, 1, 0, to + i);
  }
}

/// The same of `count` windows anywhere, `piece` rows further down.
template <int32_t kOf = kPixels>
ORCH_HOT void widen_any(const Pixels& at, const Window (&windows)[kPixels],
                        int32_t count, int32_t piece, Pair* to) {
  const PackedConvolution& conv = at.call.conv;
  const int32_t items = at.call.patch_items;
  int8_t* patch = at.patch;
  const int8_t* from[kPixels];
  const bool at_once = count == kPixels && at.patch_step != 0;
  for (int32_t i = 0; i < count; ++i) {
    const Window& window = windows[i];
    const int32_t row = window.row + piece * conv.rows.dilation;
    if (window.inside &&
        static_cast<uint32_t>(row) < static_cast<uint32_t>(conv.rows.in)) {
      const int32_t pixel = row * conv.columns.in + window.columns.in;
      from[i] = at.image + pixel * conv.in_channels;
    } else {
      gather_piece(at, window, row, patch);
      from[i] = patch;
      patch += at.patch_step;
    }
    if (!at_once) widen_pixel<kOf>(from[i], items, 1, 0, to + i);
  }
  if (at_once) widen(from, items, to);
}

/// Three columns of outputs, from the top to the bottom. Windows below each
/// other share rows of inputs.
ORCH_HOT void compute_strip(Pixels& at, int32_t v) {
  const PackedPairs& call = at.call;
  const PackedConvolution& conv = call.conv;
  const Axis& rows = conv.rows;
  const int32_t line = conv.columns.in * conv.in_channels;
  const int32_t stride = conv.columns.stride;
  const int32_t column = v * stride - conv.columns.padding;
  const int32_t line_out = conv.columns.out * conv.out_channels;
  const bool inside =
      static_cast<uint32_t>(column) < call.inner_columns &&
      static_cast<uint32_t>(column + 2 * stride) < call.inner_columns;
  Window windows[kPixels];
  bool has_windows = false;
  const int8_t* const x = at.image + column * conv.in_channels;
  int8_t* y = at.y + v * conv.out_channels;
  int32_t kept = 0;
  int32_t row = -rows.padding;
  for (int32_t h = rows.out;;) {
    Pair* to = at.pairs + kept * at.piece_pairs;
    for (int32_t piece = kept; piece < call.patch_rows; ++piece) {
      const int32_t in = row + piece * rows.dilation;
      if (inside &&
          static_cast<uint32_t>(in) < static_cast<uint32_t>(rows.in)) {
        const int8_t* from[kPixels];
        from[0] = x + in * line;
        from[1] = from[0] + stride * conv.in_channels;
        from[2] = from[1] + stride * conv.in_channels;
        widen(from, call.patch_items, to);
      } else {
        for (int32_t i = 0; !has_windows && i < kPixels; ++i) {
          windows[i] = window_at(at, row, column + i * stride);
        }
        has_windows = true;
        for (Window& window : windows) window.row = row;
        widen_any(at, windows, kPixels, piece, to);
      }
      to += at.piece_pairs;
    }
    at.loop.y[0] = y;
    at.loop.y[1] = y + conv.out_channels;
    at.loop.y[2] = y + 2 * conv.out_channels;
    orch_packed_pixels(at.pairs, at.weights, &at.loop);
    if (--h == 0) return;
    y += line_out;
    row += rows.stride;
    if (at.by_rows && rows.dilation == 1 && rows.stride < rows.kernel) {
      kept = rows.kernel - rows.stride;
      orch_move_pairs(at.pairs + rows.stride * at.piece_pairs, at.pairs, to);
    }
  }
}

/// Columns of outputs from `v` on, three pixels below each other at a time.
template <bool kTwo>
ORCH_HOT void compute_columns(Pixels& at, int32_t v) {
  const PackedPairs& call = at.call;
  const PackedConvolution& conv = call.conv;
  const Axis& rows = conv.rows;
  const Axis& columns = conv.columns;
  int32_t left = (columns.out - v) * rows.out;
  int32_t h = 0;
  while (left > 0) {
    Window windows[kPixels];
    const int32_t count = kTwo             ? next_pixels(left)
                          : left < kPixels ? left
                                           : kPixels;
    for (int32_t i = 0; i < count; ++i) {
      windows[i] = window_at(at, h * rows.stride - rows.padding,
                             v * columns.stride - columns.padding);
      at.loop.y[i] = at.y + (h * columns.out + v) * conv.out_channels;
      if (++h == rows.out) {
        h = 0;
        ++v;
      }
    }
    // Others are stored where the first one is, which is stored last.
    for (int32_t i = count; i < kPixels; ++i) at.loop.y[i] = at.loop.y[0];
    left -= count;
    Pair* to = at.pairs;
    if (kTwo && count != kPixels) {
      for (int32_t piece = 0; piece < call.patch_rows; ++piece) {
        widen_any<2>(at, windows, count, piece, to);
        to += at.piece_pairs / kPixels * 2;
      }
      orch_packed_two_pixels(at.pairs, at.weights, &at.loop);
      continue;
    }
    for (int32_t piece = 0; piece < call.patch_rows; ++piece) {
      widen_any(at, windows, count, piece, to);
      to += at.piece_pairs;
    }
    orch_packed_pixels(at.pairs, at.weights, &at.loop);
  }
}

/// Pixels whose windows are themselves, in a line; how many are computed.
template <bool kTwo>
ORCH_HOT int32_t compute_line(Pixels& at) {
  const PackedConvolution& conv = at.call.conv;
  const int32_t channels = conv.in_channels;
  const int32_t outputs = conv.out_channels;
  const int8_t* x = at.image;
  int8_t* y = at.y;
  int32_t v = 0;
  for (; v + kPixels <= conv.columns.out; v += kPixels) {
    if (kTwo && next_pixels(conv.columns.out - v) != kPixels) break;
    const int8_t* from[kPixels];
    for (int32_t i = 0; i < kPixels; ++i) {
      from[i] = x;
      at.loop.y[i] = y;
      x += channels;
      y += outputs;
    }
    widen(from, channels, at.pairs);
    orch_packed_pixels(at.pairs, at.weights, &at.loop);
  }
  return v;
}

template <bool kTwo>
ORCH_HOT void run(const PackedCall& prepared) {
  const PackedPairs& call = *static_cast<const PackedPairs*>(prepared.header);
  const PackedConvolution& conv = call.conv;
  Pair* const pairs = static_cast<Pair*>(prepared.scratch);
  // The copy of all inputs of a pixel may have room for a piece of three.
  const int32_t patch_step = (call.patch_items + 3) & ~3;
  const bool has_three = kPixels * patch_step <= conv.depth;
  Pixels at = {call,
               static_cast<const uint8_t*>(prepared.weights),
               pairs,
               reinterpret_cast<int8_t*>(pairs) + 2 * kPixels * conv.depth,
               has_three ? patch_step : 0,
               conv.depth / call.patch_rows / 2 * kPixels,
               call.patch_rows > 1,
               static_cast<const int8_t*>(prepared.input),
               static_cast<int8_t*>(prepared.out),
               {call.weight_bytes, call.all_bytes, call.ties, {}}};
  // A band is a part of a line.
  const bool is_line =
      conv.rows.out == 1 && conv.rows.in == 1 && call.patch_rows == 1 &&
      call.patch_items == conv.in_channels &&
      (kTwo ? static_cast<uint32_t>(conv.columns.out) <= call.inner_columns
            : static_cast<uint32_t>(conv.columns.out) == call.inner_columns) &&
      conv.columns.stride == 1;
  for (int32_t n = conv.batch; n > 0; --n) {
    int32_t v = is_line ? compute_line<kTwo>(at) : 0;
    if (!kTwo || !is_line) {
      for (; v + kPixels <= conv.columns.out; v += kPixels) {
        compute_strip(at, v);
      }
    }
    compute_columns<kTwo>(at, v);
    at.image += conv.rows.in * conv.columns.in * conv.in_channels;
    at.y += conv.rows.out * conv.columns.out * conv.out_channels;
  }
}
#endif

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPairs; `scratch` holds the pairs of three pixels, then
// the inputs of one if they do not lie side by side. Where pixels are their own
// windows, the output may be the input: nothing is stored before what it
// replaces is in pairs. The build has checked everything.
void packed_conv2d(const PreparedCall& call) {
  run<false>(static_cast<const PackedCall&>(call));
}

ORCH_PACKED_FORMS(PackedPairs, packed_conv2d, limited_packed_conv2d)

// Prepared: the same for bands of few pixels, of which the last ones are two at
// once.
void packed_conv2d_two(const PreparedCall& call) {
  run<true>(static_cast<const PackedCall&>(call));
}

ORCH_LIMITED_BAND(PackedPairs, packed_conv2d_two, limited_packed_conv2d_two)

}  // namespace orch::cortex_m

#endif
