#include "convolve.h"

#include <string.h>

#include "cortex_m/assembly.h"
#include "cortex_m/unroll.h"
#include "dot.h"

#if ORCH_ISA == ORCH_ISA_MVE
// Loads that widen take their address from the lower registers; sums are in
// those with even numbers.
asm(ORCH_FUNCTION("orch_int16_sums") ORCH_SAVE R"(
  mov r12, r0
  mov r5, r2
  mov r9, r3
  ldm r9, {r4, r6, r8, r10}
  ldm r1, {r0, r1, r2, r3}
  wlstp.16 lr, r5, 2f
1:
  vldrh.u16 q0, [r12], #16
  vldrb.s16 q1, [r0], #8
  vmladava.s16 r4, q0, q1
  vldrb.s16 q2, [r1], #8
  vmladava.s16 r6, q0, q2
  vldrb.s16 q3, [r2], #8
  vmladava.s16 r8, q0, q3
  vldrb.s16 q1, [r3], #8
  vmladava.s16 r10, q0, q1
  letp lr, 1b
2:
  stm r9, {r4, r6, r8, r10}
)" ORCH_RETURN ORCH_END("orch_int16_sums"));
#elif ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
// Weights are widened in pairs, the first and the third of four: inputs are
// paired in the same way.
asm(ORCH_FUNCTION("orch_int16_products") R"(
  push {r3-r11, lr}
  .cfi_def_cfa_offset 40
  .cfi_rel_offset lr, 36
  ldm r1, {r7-r10}
  ldm r3, {r1, r11, r12, lr}
1:
  ldr r3, [r0], #4
  ldr r4, [r0], #4
  pkhbt r5, r3, r4, lsl #16
  pkhtb r3, r4, r3, asr #16
  ldr r4, [r7], #4
  sxtb16 r6, r4
  smlad r1, r5, r6, r1
  sxtb16 r6, r4, ror #8
  smlad r1, r3, r6, r1
  ldr r4, [r8], #4
  sxtb16 r6, r4
  smlad r11, r5, r6, r11
  sxtb16 r6, r4, ror #8
  smlad r11, r3, r6, r11
  ldr r4, [r9], #4
  sxtb16 r6, r4
  smlad r12, r5, r6, r12
  sxtb16 r6, r4, ror #8
  smlad r12, r3, r6, r12
  ldr r4, [r10], #4
  sxtb16 r6, r4
  smlad lr, r5, r6, lr
  sxtb16 r6, r4, ror #8
  smlad lr, r3, r6, lr
  subs r2, #1
  bne 1b
  pop {r3}
  stm r3, {r1, r11, r12, lr}
)" ORCH_RETURN ORCH_END("orch_int16_products"));
#endif

namespace orch::cortex_m_int16 {
namespace {

/// Sums of four channels of a pixel. They are added up in 32 bits as long as
/// these certainly hold them, then in 64.
class Sums {
 public:
  Sums() {
    cortex_m::unrolled<kChannels>([&](auto k) { part_[k] = 0; });
  }

  /// Adds the products of a piece. `w` has the weights of each channel.
  ORCH_ALWAYS_INLINE void add(const int16_t* x, const int8_t** w,
                              int32_t items) {
    if (__builtin_expect(items <= left_, 1)) {
      add_products(x, w, items, part_);
      left_ -= items;
      return;
    }
    add_long(x, w, items);
  }

  /// Writes what is stored for the first `count` of them.
  ORCH_ALWAYS_INLINE void finish(const Convolution& conv, int32_t channel,
                                 int32_t count, int16_t* y) {
    if (__builtin_expect(is_long_, 0)) flush();
    ORCH_FEW_ROUNDS
    for (int32_t k = 0; k < count; ++k) {
      y[k] = is_long_ ? conv.any_item(total_[k], channel + k)
                      : conv.item(part_[k], channel + k);
    }
  }

 private:
  __attribute__((noinline)) void add_long(const int16_t* x,
                                          const int8_t* const* weights,
                                          int32_t items) {
    const int8_t* w[kChannels];
    for (int k = 0; k < kChannels; ++k) w[k] = weights[k];
    while (items > 0) {
      if (left_ == 0) flush();
      const int32_t now = items < left_ ? items : left_;
      add_products(x, w, now, part_);
      left_ -= now;
      items -= now;
      x += now;
      for (int k = 0; k < kChannels; ++k) w[k] += now;
    }
  }

  __attribute__((noinline)) void flush() {
    for (int k = 0; k < kChannels; ++k) {
      total_[k] = (is_long_ ? total_[k] : 0) + part_[k];
      part_[k] = 0;
    }
    is_long_ = true;
    left_ = kMostProducts;
  }

  int64_t total_[kChannels];  // if is_long_
  int32_t part_[kChannels];
  int32_t left_ = kMostProducts;  // products that `part_` has room for
  bool is_long_ = false;
};

/// The taps of a pixel that lie in the input, as pieces of `items` that lie one
/// after the other in inputs as well as in weights.
struct Patch {
  int32_t rows;
  int32_t columns;
  int32_t items;
  int32_t x_row;
  int32_t x_column;
  int32_t w_row;
  int32_t w_column;
  int32_t w_channel;  // from one output channel to the next
};

/// Items of a small window that are put side by side on the stack, with zeros
/// for padding: one piece costs less than many for every four channels.
constexpr int32_t kMostGathered = 160;

/// Puts the taps of a pixel where those of a whole window are.
void gather(const Convolution& conv, const Patch& patch, const Taps& rows,
            const Taps& columns, const int16_t* x, int16_t* to) {
  const int32_t whole = patch.w_channel;
  if (rows.count != conv.rows.kernel || columns.count != conv.columns.kernel) {
    memset(to, 0, static_cast<size_t>(whole) * sizeof *to);
  }
  to += rows.first * patch.w_row + columns.first * patch.w_column;
  ORCH_FEW_ROUNDS
  for (int32_t i = patch.rows; i > 0; --i) {
    const int16_t* from = x;
    int16_t* item = to;
    ORCH_FEW_ROUNDS
    for (int32_t j = patch.columns; j > 0; --j) {
      ORCH_FEW_ROUNDS
      for (int32_t k = 0; k < patch.items; ++k) item[k] = from[k];
      from += patch.x_column;
      item += patch.w_column;
    }
    x += patch.x_row;
    to += patch.w_row;
  }
}

/// Output channels from `channel` to before `end` of a pixel, which have their
/// inputs at `x`; `w` has the weights of the first one.
ORCH_HOT void compute(const Convolution& conv, const Patch& patch,
                      const int16_t* x, const int8_t* w, int32_t channel,
                      int32_t end, int16_t* y) {
  while (channel < end) {
    const int32_t left = end - channel;
    const int32_t count = left < kChannels ? left : kChannels;
    const int8_t* first[kChannels];
    ORCH_FEW_ROUNDS
    for (int32_t k = 0; k < kChannels; ++k) {
      // What is missing in the last tile repeats a channel.
      first[k] = w;
      if (k + 1 < count) w += patch.w_channel;
    }
    w += patch.w_channel;
    Sums sums;
    const int16_t* line = x;
    ORCH_FEW_ROUNDS
    for (int32_t i = patch.rows; i > 0; --i) {
      const int8_t* weights[kChannels];
      cortex_m::unrolled<kChannels>([&](auto k) { weights[k] = first[k]; });
      const int16_t* from = line;
      ORCH_FEW_ROUNDS
      for (int32_t j = patch.columns;;) {
        sums.add(from, weights, patch.items);
        if (--j == 0) break;
        from += patch.x_column;
        cortex_m::unrolled<kChannels>(
            [&](auto k) { weights[k] += patch.w_column; });
      }
      line += patch.x_row;
      cortex_m::unrolled<kChannels>([&](auto k) { first[k] += patch.w_row; });
    }
    sums.finish(conv, channel, count, y + channel);
    channel += count;
  }
}

}  // namespace

void convolve(const Convolution& conv) {
  const int32_t depth = conv.group_channels;
  const int32_t line = conv.in.width * conv.in.channels;
  // Taps side by side are one piece if nothing lies between them.
  const bool joined = conv.columns.dilation == 1 && depth == conv.in.channels;
  Patch patch;
  patch.items = depth;
  patch.x_row = wrapping_product(conv.rows.dilation, line);
  patch.x_column = wrapping_product(conv.columns.dilation, conv.in.channels);
  patch.w_row = conv.columns.kernel * depth;
  patch.w_column = depth;
  patch.w_channel = conv.rows.kernel * patch.w_row;
  int16_t* y = conv.y;
  int16_t gathered[kMostGathered];
  const bool gathers = depth == conv.in.channels &&
                       conv.rows.kernel * conv.columns.kernel > 1 &&
                       patch.w_channel <= kMostGathered;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = cortex_m::taps_at(conv.rows, h);
      for (int32_t v = 0; v < conv.out.width; ++v) {
        const Taps columns = cortex_m::taps_at(conv.columns, v);
        patch.columns = joined ? 1 : columns.count;
        if (joined) patch.items = columns.count * depth;
        patch.rows = columns.count == 0 ? 0 : rows.count;
        const int16_t* x = conv.x + ((n * conv.in.height + rows.in) * line +
                                     columns.in * conv.in.channels);
        const int8_t* w =
            conv.w + (rows.first * patch.w_row + columns.first * depth);
        Patch now = patch;
        if (gathers) {
          gather(conv, patch, rows, columns, x, gathered);
          now.rows = now.columns = 1;
          now.items = patch.w_channel;
          x = gathered;
          w = conv.w;
        }
        for (int32_t c = 0; c < conv.out.channels; c += conv.group_outputs) {
          compute(conv, now, x, w, c, c + conv.group_outputs, y);
          x += depth;
          w += conv.group_outputs * patch.w_channel;
        }
        y += conv.out.channels;
      }
    }
  }
}

void multiply(Convolution& conv, int32_t rows, int32_t depth, int32_t columns) {
  conv.in = {1, 1, rows, depth};
  conv.out = {1, 1, rows, columns};
  conv.rows = {1, 1, 1, 1, 0, 1};
  conv.columns = {rows, rows, 1, 1, 0, 1};
  conv.group_channels = depth;
  conv.group_outputs = columns;
  convolve(conv);
}

}  // namespace orch::cortex_m_int16
