// The assembly of packed_two_pixels.h, and convolutions of two pixels at once.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "packed.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "packed_two_pixels.h"
#include "tile_dsp.h"

// A step takes four taps and is of 48 bytes. The loop begins where as many are
// left as its first round has to do.
#if !ORCH_FAVOUR_SPEED
#define ORCH_TWO_STEPS "4"
#else
#define ORCH_TWO_STEPS "16"
#endif

asm(R"(
  .section .text.orch_packed_two_pixels, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_two_pixels
  .hidden orch_packed_two_pixels
  .type orch_packed_two_pixels, %function
  .thumb_func
  .macro orch_four_taps
  ldrd r6, r9, [r1], #8
  ldm.w r0!, {r2, r3, r4, r5}
  smlad r7, r2, r6, r7
  smlad r8, r3, r6, r8
  sxtb16 r6, r6
  smlad r10, r2, r6, r10
  smlad r11, r3, r6, r11
  smlad r7, r4, r9, r7
  smlad r8, r5, r9, r8
  sxtb16 r9, r9
  smlad r10, r4, r9, r10
  smlad r11, r5, r9, r11
  .endm
  .macro orch_ties_down sum, ties
  cmp \sum, r3
  it lt
  sublt \sum, \sum, \ties
  .endm
orch_packed_two_pixels:
  push {r4-r11, lr}
  @ 0: x, bytes of weights; 8: y, ties; 20: entry, end of weights.
  sub sp, #28
  ldm r2, {r4, r5, r6, r7, r8}
  add r5, r1
  strd r0, r4, [sp]
  strd r7, r8, [sp, #8]
  str r6, [sp, #16]
  rsbs r4, #0
  and r4, #8 * ()" ORCH_TWO_STEPS R"( - 1)
  add r4, r4, r4, lsl #1
  adr.w r2, 2f
  add r2, r2, r4, lsl #1
  adds r2, #1
  strd r2, r5, [sp, #20]
1:
  ldrd r7, r10, [r1], #8
  ldrd r0, lr, [sp]
  add lr, r1
  mov r8, r7
  mov r11, r10
  ldr pc, [sp, #20]
  .balign 4
2:
  .rept )" ORCH_TWO_STEPS R"(
  orch_four_taps
  .endr
  cmp r1, lr
  bne 2b
  add r0, sp, #8
  ldm r0, {r0, r5, r6}
  ldm r1!, {r2, r3, r4}
  sub r7, r10
  sub r8, r11
  lsl r10, r4
  lsl r11, r4
  smmla r10, r10, r2, r3
  smmla r11, r11, r2, r3
  cbz r6, 4f
  lsl r2, r6, r4
  orch_ties_down r10, "r2, lsr #1"
  orch_ties_down r11, "r2, lsr #1"
4:
  ssat r10, #8, r10, asr #13
  ssat r11, #8, r11, asr #13
  lsrs r4, #8
  strb r11, [r5, r4]
  strb r10, [r0, r4]
  ldm r1!, {r2, r3, r4}
  smmla r7, r7, r2, r3
  smmla r8, r8, r2, r3
  cbz r6, 5f
  orch_ties_down r7, #128
  orch_ties_down r8, #128
5:
  asr r7, r4
  asr r8, r4
  ssat r7, #8, r7
  ssat r8, #8, r8
  lsrs r4, #8
  strb r8, [r5, r4]
  strb r7, [r0, r4]
  ldr r2, [sp, #24]
  cmp r1, r2
  bne 1b
  add sp, #28
  pop {r4-r11, pc}
  .size orch_packed_two_pixels, . - orch_packed_two_pixels
  .purgem orch_four_taps
  .purgem orch_ties_down
  .text
)");

asm(R"(
  .section .text.orch_widen_two_pixels, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_widen_two_pixels
  .hidden orch_widen_two_pixels
  .type orch_widen_two_pixels, %function
  .thumb_func
orch_widen_two_pixels:
  push {r4-r7, lr}
1:
  ldr r6, [r0], #4
  ldr r7, [r1], #4
  sxtb16 r4, r6
  sxtb16 r5, r7
  sxtb16 r6, r6, ror #8
  sxtb16 r7, r7, ror #8
  stm r3!, {r4, r5, r6, r7}
  cmp r0, r2
  bne 1b
  pop {r4-r7, pc}
  .size orch_widen_two_pixels, . - orch_widen_two_pixels
  .text
)");

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

// The same with limits.
void limited_packed_conv2d_few(const PreparedCall& call) {
  run_limited<PackedPairs>(packed_conv2d_few, call);
}

}  // namespace orch::cortex_m

#endif
