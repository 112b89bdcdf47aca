// Depthwise convolution with vectors, over strips: the part of the input that
// an output row needs, column by column, so that the taps of a pixel lie in one
// piece. Padding becomes items that add nothing.
#include "assembly.h"
#include "convolve.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <stddef.h>
#include <string.h>

#include "packed_strip.h"
#include "requantize_mve.h"
#include "run.h"
#include "tile_mve.h"

namespace orch::cortex_m {
namespace {

/// Most taps of a window: as many as a vector has items.
inline constexpr int32_t kMostStripTaps = 16;

/// Four channels of a depthwise convolution. Known to the assembly.
struct Quad {
  int32_t begin[4];  // what sums begin with
  int32_t multipliers[4];
  int32_t shifts[4];  // none is positive
  int32_t low[4];
  int32_t high[4];
  int8_t w[kMostStripTaps][4];  // 0 where there is no tap
};

static_assert(offsetof(Quad, multipliers) == 16 &&
                  offsetof(Quad, shifts) == 32 && offsetof(Quad, low) == 48 &&
                  offsetof(Quad, high) == 64 && offsetof(Quad, w) == 80,
              "the assembly knows where things are");

// Computes `count` pixels, at least one, `x_step` and `y_step` bytes apart.
// `x` has 64 bytes for each, at addresses that 4 divides: pixels of four
// channels that were brought together, one tap of the four after the other, so
// that a load takes them apart by channel.
extern "C" void orch_compute_quad(const Quad* quad, const int8_t* x,
                                  int32_t x_step, int8_t* y, int32_t y_step,
                                  int32_t count, int32_t offset);
asm(ORCH_FUNCTION("orch_compute_quad") ORCH_SAVE_VECTORS R"(
  add r12, r0, #80
  vld40.8 {q4, q5, q6, q7}, [r12]
  vld41.8 {q4, q5, q6, q7}, [r12]
  vld42.8 {q4, q5, q6, q7}, [r12]
  vld43.8 {q4, q5, q6, q7}, [r12]
  ldr r7, [sp, #108]
  ldrd r5, lr, [sp, #100]
  dls lr, lr
1:
  vld40.8 {q0, q1, q2, q3}, [r1]
  vld41.8 {q0, q1, q2, q3}, [r1]
  vld42.8 {q0, q1, q2, q3}, [r1]
  vld43.8 {q0, q1, q2, q3}, [r1]
  ldrd r4, r6, [r0]
  ldrd r8, r10, [r0, #8]
  vmladava.s8 r4, q0, q4
  vmladava.s8 r6, q1, q5
  vmladava.s8 r8, q2, q6
  vmladava.s8 r10, q3, q7
  vldrw.32 q1, [r0, #16]
  vmov q0[2], q0[0], r4, r8
  vmov q0[3], q0[1], r6, r10
  vqrdmulh.s32 q0, q0, q1
  vldrw.32 q1, [r0, #32]
  @ Ties of negative numbers go down, for which they are made smaller.
  vand q2, q0, q1
  vshr.s32 q2, q2, #31
  vadd.i32 q0, q0, q2
  vrshl.s32 q0, q0, q1
  vldrw.32 q1, [r0, #48]
  vadd.i32 q0, q0, r7
  vldrw.32 q2, [r0, #64]
  vmax.s32 q0, q0, q1
  vmin.s32 q0, q0, q2
  vstrb.32 q0, [r3]
  add r1, r1, r2
  add r3, r3, r5
  le lr, 1b
)" ORCH_RETURN_VECTORS ORCH_END("orch_compute_quad"));

/// Bytes that a strip has room for, and what may be read behind it.
constexpr int32_t kStripBytes = 160;
constexpr int32_t kReadBehind = 64;

/// Most taps of a window whose weights are brought together.
constexpr int32_t kMostSharedTaps = 40;

class Strips {
 public:
  /// `bytes`: of a column's row in a strip, 4 or 1.
  Strips(const Convolution& conv, int32_t bytes)
      : conv_(conv),
        bytes_(bytes),
        kernel_rows_(conv.rows.kernel),
        taps_(kernel_rows_ * conv.columns.kernel),
        line_bytes_(conv.in.width * conv.in.channels),
        row_span_(wrapping_product(conv.rows.kernel - 1, conv.rows.dilation)) {}

  /// Four channels of all pixels; each has its own input.
  __attribute__((noinline)) void compute_channels(int32_t channel) {
    Quad quad;
    memset(quad.w, 0, sizeof quad.w);
    int32_t sums[4] = {};
    for (int32_t t = 0; t < taps_; ++t) {
      const int8_t* w = weights_of(t) + channel;
      memcpy(quad.w[t], w, 4);
      for (int32_t i = 0; i < 4; ++i) sums[i] += w[i];
    }
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t c = channel + i;
      quad.begin[i] = begin(c, sums[i]);
      quad.multipliers[i] = conv_.to.multipliers[c];
      quad.shifts[i] = conv_.to.shifts[c];
      quad.low[i] = conv_.to.range.low;
      quad.high[i] = conv_.to.range.high;
    }
    quad_ = &quad;
    compute_strips(channel, channel);
  }

  /// `count` channels of all pixels from `channel` on, at most four; they share
  /// their input.
  __attribute__((noinline)) void compute_shared(int32_t channel,
                                                int32_t count) {
    Line line;
    int8_t weights[4][kMostSharedTaps];
    for (int32_t i = 0; i < 4; ++i) line.w[i] = weights[i];
    line.count = 2;
    line.items = taps_;
    line.x_skip = 0;
    line.w_skip = 0;
    line.x_column = conv_.columns.stride * kernel_rows_ - passed_items(taps_);
    line.y_column = conv_.out.channels;
    line.lanes = count;
    line.offset = conv_.to.offset;
    line.low = conv_.to.range.low;
    line.high = conv_.to.range.high;
    load_four(conv_.to.multipliers + channel, 1, count, line.multipliers);
    load_four(conv_.to.shifts + channel, 1, count, line.shifts);
    for (int32_t i = 0; i < 4; ++i) {
      // Where fewer are left, the last one stands in.
      const int32_t c = channel + (i < count ? i : count - 1);
      int32_t sum = 0;
      for (int32_t t = 0; t < taps_; ++t) {
        weights[i][t] = weights_of(t)[c];
        sum += weights[i][t];
      }
      line.begin[i] = begin(c, sum);
    }
    line_ = &line;
    compute_strips(channel / conv_.multiplier, channel);
  }

 private:
  /// `value`, at least 0, at most `most`.
  static int32_t limit(int32_t value, int32_t most) {
    if (value < 0) return 0;
    return value < most ? value : most;
  }

  /// Fills the strip with a part of each output row, from `channel` of the
  /// input on, one after the other, and computes channels from `first_output`
  /// on.
  __attribute__((noinline)) void compute_strips(int32_t channel,
                                                int32_t first_output) {
    const int32_t stride = conv_.columns.stride;
    const int32_t kernel = conv_.columns.kernel;
    const int32_t column_bytes = kernel_rows_ * bytes_;
    const int32_t most = (kStripBytes / column_bytes - kernel) / stride + 1;
    for (int32_t v = 0; v < conv_.out.width; v += most) {
      const int32_t count = limit(conv_.out.width - v, most);
      const int32_t columns = (count - 1) * stride + kernel;
      const int32_t first = v * stride - conv_.columns.padding;
      const int32_t before = limit(-first, columns);
      const int32_t inside = limit(conv_.in.width - first, columns) - before;
      const int8_t* x =
          conv_.x + channel + (first + before) * conv_.in.channels;
      int8_t* y = conv_.y + v * conv_.out.channels + first_output;
      // What lies beside the image stays.
      pad(columns * column_bytes);
      for (int32_t n = 0; n < conv_.out.batch; ++n) {
        int32_t row = -conv_.rows.padding;
        for (int32_t h = 0; h < conv_.out.height; ++h) {
          if (row < 0 || row + row_span_ >= conv_.in.height) {
            pad(columns * column_bytes);
          }
          fill(x, row, strip_ + before * column_bytes, inside);
          if (bytes_ == 4) {
            orch_compute_quad(quad_, strip_, stride * column_bytes, y,
                              conv_.out.channels, count, conv_.to.offset);
          } else {
            line_->y_end = y + count * conv_.out.channels;
            orch_compute_line(line_, strip_, y);
          }
          y += conv_.out.width * conv_.out.channels;
          row += conv_.rows.stride;
        }
        x += conv_.in.height * line_bytes_;
      }
    }
  }

  /// Rows from `row` on, as far as they are in the image.
  void fill(const int8_t* x, int32_t row, int8_t* to, int32_t columns) const {
    if (bytes_ == 4 && row_span_ == 2 && kernel_rows_ == 3 && row >= 0 &&
        row + 2 < conv_.in.height) {
      copy_three(x + row * line_bytes_, to, columns);
      return;
    }
    for (int32_t i = 0; i < kernel_rows_; ++i) {
      if (row >= 0 && row < conv_.in.height) {
        copy_row(x + row * line_bytes_, to + i * bytes_, columns);
      }
      row += conv_.rows.dilation;
    }
  }

  /// Items that add nothing.
  void pad(int32_t bytes) { cortex_m::fill(strip_, bytes, -conv_.x_offset); }

  /// One row, column by column.
  ORCH_HOT void copy_row(const int8_t* x, int8_t* to, int32_t count) const {
    const int32_t step = conv_.in.channels;
    const int32_t to_step = kernel_rows_ * bytes_;
    if (bytes_ == 4) {
      for (; count > 0; --count) {
        memcpy(to, x, 4);
        x += step;
        to += to_step;
      }
    }
    for (; count > 0; --count) {
      *to = *x;
      x += step;
      to += to_step;
    }
  }

  /// Columns of three rows.
  ORCH_HOT void copy_three(const int8_t* x, int8_t* to, int32_t count) const {
    const int32_t line = line_bytes_;
    const int32_t step = conv_.in.channels;
    for (; count > 0; --count) {
      uint32_t items[3];
      memcpy(&items[0], x, 4);
      memcpy(&items[1], x + line, 4);
      memcpy(&items[2], x + 2 * line, 4);
      memcpy(to, &items[0], 4);
      memcpy(to + 4, &items[1], 4);
      memcpy(to + 8, &items[2], 4);
      x += step;
      to += 12;
    }
  }

  /// The weights of a tap, counted as strips have them.
  const int8_t* weights_of(int32_t tap) const {
    const int32_t column = tap / kernel_rows_;
    const int32_t row = tap - column * kernel_rows_;
    return conv_.w + (row * conv_.columns.kernel + column) * conv_.out.channels;
  }

  /// What the sum of a channel begins with.
  int32_t begin(int32_t channel, int32_t weights) const {
    int32_t sum = conv_.bias == nullptr ? 0 : conv_.bias[channel];
    add_product(sum, weights, conv_.x_offset);
    return sum;
  }

  const Convolution& conv_;
  const Quad* quad_ = nullptr;  // where channels have inputs of their own
  Line* line_ = nullptr;        // where they share one
  int32_t bytes_;
  int32_t kernel_rows_;
  int32_t taps_;
  int32_t line_bytes_;
  int32_t row_span_;  // from a window's first row to its last
  alignas(4) int8_t strip_[kStripBytes + kReadBehind];
};

/// Computes a convolution with few taps, which most are; false if it is none of
/// these. Not inlined, as others do without the stack that strips need.
__attribute__((noinline)) bool convolve_strips(const Convolution& conv) {
  const bool shared = conv.multiplier > 1;
  const int32_t most_taps = shared ? kMostSharedTaps : kMostStripTaps;
  const bool fits = conv.rows.kernel <= most_taps &&
                    conv.columns.kernel <= most_taps &&
                    conv.rows.kernel * conv.columns.kernel <= most_taps;
  // -x_offset must be an item, since padding gets it.
  if (!fits || conv.columns.dilation != 1 || conv.x_offset == -128 ||
      (!shared && conv.out.channels < 4) ||
      has_left_shift(conv.to, conv.out.channels)) {
    return false;
  }
  Strips strips(conv, shared ? 1 : 4);
  if (shared) {
    for (int32_t c = 0; c < conv.out.channels;) {
      const int32_t left = conv.multiplier - c % conv.multiplier;
      const int32_t count = left < 4 ? left : 4;
      strips.compute_shared(c, count);
      c += count;
    }
    return true;
  }
  // The last four may overlap those before.
  for (int32_t c = 0; c < conv.out.channels; c += 4) {
    const bool last = c + 4 > conv.out.channels;
    strips.compute_channels(last ? conv.out.channels - 4 : c);
  }
  return true;
}

/// At most four channels of the taps of an output pixel that lie in the input.
/// Known to the assembly.
struct Window {
  const int8_t* x;  // of the first channel at the first tap
  const int8_t* w;
  int32_t rows;
  int32_t columns;
  int32_t x_column;  // from a tap to the next one
  int32_t x_skip;    // from the end of a row of taps to the next
  int32_t w_column;
  int32_t w_skip;
  int32_t x_offset;
  int32_t count;
  int32_t sums[4];
};

static_assert(sizeof(int8_t*) == 4 && offsetof(Window, rows) == 8 &&
                  offsetof(Window, columns) == 12 &&
                  offsetof(Window, x_column) == 16 &&
                  offsetof(Window, x_skip) == 20 &&
                  offsetof(Window, w_column) == 24 &&
                  offsetof(Window, w_skip) == 28 &&
                  offsetof(Window, x_offset) == 32 &&
                  offsetof(Window, count) == 36 && offsetof(Window, sums) == 40,
              "the assembly knows where things are");

// Adds the taps of a window to the sums of channels that have inputs of their
// own, or share one.
extern "C" void orch_add_taps(Window* window);
extern "C" void orch_add_shared_taps(Window* window);
asm(R"(
  .macro orch_add_window shared
  ldm r0, {r1-r6, r8-r11}
  vldrw.32 q0, [r0, #40]
  vctp.32 r11
1:
  dls lr, r4
2:
  .if \shared
  vpst
  vldrbt.s32 q1, [r2]
  ldrsb r12, [r1]
  add r1, r1, r5
  add r12, r12, r10
  add r2, r2, r8
  vmla.s32 q0, q1, r12
  .else
  vpstt
  vldrbt.s32 q1, [r1]
  vldrbt.s32 q2, [r2]
  add r1, r1, r5
  vadd.i32 q1, q1, r10
  add r2, r2, r8
  vmul.i32 q1, q1, q2
  vadd.i32 q0, q0, q1
  .endif
  le lr, 2b
  add r1, r1, r6
  add r2, r2, r9
  subs r3, r3, #1
  bne 1b
  vstrw.32 q0, [r0, #40]
  .endm
)" ORCH_FUNCTION("orch_add_taps") ORCH_SAVE
    "  orch_add_window 0\n" ORCH_RETURN ORCH_END("orch_add_taps")
        ORCH_FUNCTION("orch_add_shared_taps") ORCH_SAVE
    "  orch_add_window 1\n" ORCH_RETURN ORCH_END(
        "orch_add_shared_taps") "  .purgem orch_add_window\n");

/// At most four channels of a pixel, from `channel` on.
ORCH_HOT void compute_window(const Convolution& conv, Window& window,
                             int32_t channel, int8_t* y) {
  const int32_t count = window.count;
  for (int32_t& sum : window.sums) sum = 0;
  if (conv.bias != nullptr) {
    ORCH_FEW_ROUNDS
    for (int32_t i = 0; i < count; ++i) {
      window.sums[i] = conv.bias[channel + i];
    }
  }
  if (window.rows != 0 && window.columns != 0) {
    (conv.multiplier != 1 ? orch_add_shared_taps : orch_add_taps)(&window);
  }
  finish<1, 4>(conv.to, window.sums, channel, count, y, 0);
}

/// Any convolution, pixel by pixel. Not inlined either.
__attribute__((noinline)) void convolve_pixels(const Convolution& conv) {
  const int32_t channels = conv.out.channels;
  const int32_t m = conv.multiplier;
  int8_t* y = conv.y;
  Window window;
  window.x_column = wrapping_product(conv.columns.dilation, conv.in.channels);
  window.w_column = channels;
  window.x_offset = conv.x_offset;
  const int32_t x_row =
      wrapping_product(conv.rows.dilation, conv.in.width * conv.in.channels);
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      window.rows = rows.count;
      for (int32_t v = 0; v < conv.out.width; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        const int32_t pixel =
            (n * conv.in.height + rows.in) * conv.in.width + columns.in;
        const int32_t tap = rows.first * conv.columns.kernel + columns.first;
        const int8_t* const x = conv.x + pixel * conv.in.channels;
        const int8_t* const w = conv.w + tap * channels;
        window.columns = columns.count;
        window.x_skip = x_row - columns.count * window.x_column;
        window.w_skip = (conv.columns.kernel - columns.count) * channels;
        for (int32_t c = 0; c < channels;) {
          const int32_t input = m == 1 ? c : c / m;
          const int32_t left = (m == 1 ? channels : (input + 1) * m) - c;
          window.x = x + input;
          window.w = w + c;
          window.count = left < 4 ? left : 4;
          compute_window(conv, window, c, y);
          y += window.count;
          c += window.count;
        }
      }
    }
  }
}

}  // namespace

void convolve_depthwise(const Convolution& conv) {
  if (!convolve_strips(conv)) convolve_pixels(conv);
}

}  // namespace orch::cortex_m

#endif
