#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

/// Channels that are computed together, and words of each in the scratch memory
/// of a call.
constexpr int32_t kChannels = 4;
constexpr int32_t kChannelWords = 9;
/// Words of a column: for each channel two pairs of rows.
constexpr int32_t kColumnWords = 2 * kChannels;

/// What `orch_packed_two_rows` takes besides pointers. Known to the assembly.
struct RowLoop {
  int32_t column_bytes;  // of the pairs that windows begin with
  int32_t line;          // from the first output row to the second one, or 0
  int32_t channels;
};

// Four channels of two output rows. r0: `x`, columns; r1: `w`, what `expand`
// makes of four channels; r2: `y`; r3: `loop`. The first pair of rows of a
// column are the two upper ones; for the other function the second one is. The
// lower output is stored first: without a line the upper one stays.
using RowsFn = void(const Pair* x, const int32_t* w, int8_t* y,
                    const RowLoop* loop);
extern "C" RowsFn orch_packed_two_rows;
extern "C" RowsFn orch_packed_two_rows_swapped;
/// The same for windows that move by two: one output row.
extern "C" RowsFn orch_packed_row;
extern "C" RowsFn orch_packed_row_swapped;
asm(R"(
  .syntax unified
  @ Adds products of a column: of two rows with the first two weights, of the
  @ last one with the third weight; for the lower output one row further down.
  .macro orch_column upper, lower, w01, w12
  smlad r7, \upper, \w01, r7
  smlatb r8, \upper, \w01, r8
  smlabt r7, \lower, \w12, r7
  smlad r8, \lower, \w12, r8
  .endm
  @ Four channels; leaves weights in r5, r6, r9 to r12, and the start in lr.
  .macro orch_begin_rows name
  .section .text.\name, "ax", %progbits
  .thumb
  .balign 4
  .globl \name
  .hidden \name
  .type \name, %function
  .thumb_func
\name:
  push {r4-r11, lr}
  sub sp, #36
  ldm r3, {r4, r5, r6}
  add r7, r0, #32
  strd r5, r6, [sp, #8]
  strd r0, r2, [sp, #16]
  strd r4, r7, [sp, #24]
1:
  ldm r1!, {r3, r4, r5, r6, r9, r10, r11, r12, lr}
  strd r3, r4, [sp]
  str r1, [sp, #32]
  ldrd r0, r2, [sp, #16]
  ldr r1, [sp, #24]
  add r1, r0
  .endm
  .macro orch_end_rows name
  cmp r0, r1
  bne 2b
  ldrd r0, r2, [sp, #16]
  adds r0, #8
  adds r2, #1
  strd r0, r2, [sp, #16]
  ldrd r3, r1, [sp, #28]
  cmp r0, r3
  bne 1b
  add sp, #36
  pop {r4-r11, pc}
  .size \name, . - \name
  .endm
  .macro orch_two_rows name, upper, lower
  orch_begin_rows \name
2:
  ldrd r3, r4, [r0], #32
  smlad r7, \upper, r5, lr
  smlatb r8, \upper, r5, lr
  smlabt r7, \lower, r6, r7
  smlad r8, \lower, r6, r8
  ldrd r3, r4, [r0]
  orch_column \upper, \lower, r9, r10
  ldrd r3, r4, [r0, #32]
  orch_column \upper, \lower, r11, r12
  ldrd r3, r4, [sp]
  smmla r7, r7, r3, r4
  smmla r8, r8, r3, r4
  ssat r7, #8, r7, asr #11
  ssat r8, #8, r8, asr #11
  ldrd r3, r4, [sp, #8]
  strb r8, [r2, r3]
  strb r7, [r2]
  add r2, r4
  orch_end_rows \name
  .endm
  .macro orch_row name, upper, lower
  orch_begin_rows \name
  ldr r8, [sp, #12]
2:
  ldrd r3, r4, [r0], #64
  smlad r7, \upper, r5, lr
  smlabt r7, \lower, r6, r7
  ldrd r3, r4, [r0, #-32]
  smlad r7, \upper, r9, r7
  smlabt r7, \lower, r10, r7
  ldrd r3, r4, [r0]
  smlad r7, \upper, r11, r7
  smlabt r7, \lower, r12, r7
  ldrd r3, r4, [sp]
  smmla r7, r7, r3, r4
  ssat r7, #8, r7, asr #11
  strb r7, [r2]
  add r2, r8
  orch_end_rows \name
  .endm
  orch_two_rows orch_packed_two_rows, r3, r4
  orch_two_rows orch_packed_two_rows_swapped, r4, r3
  orch_row orch_packed_row, r3, r4
  orch_row orch_packed_row_swapped, r4, r3
  .purgem orch_column
  .purgem orch_begin_rows
  .purgem orch_end_rows
  .purgem orch_two_rows
  .purgem orch_row
  .text
)");

/// Two numbers as a pair.
ORCH_ALWAYS_INLINE Pair pair_of(int32_t low, int32_t high) {
  return static_cast<Pair>((static_cast<uint32_t>(low) & 0xFFFFU) |
                           static_cast<uint32_t>(high) << 16);
}

/// Four channels as the assembly reads them.
void expand(const PackedChannel* channel, int32_t* to) {
  constexpr int32_t kOffset = INT8_MIN * (1 << 11);
  for (int32_t c = 0; c < kChannels; ++c) {
    *to++ = channel->multiplier;
    *to++ = channel->added + kOffset;
    const int8_t* w = channel->weights;
    const int32_t factor = 1 << channel->left;
    for (int32_t column = 0; column < 3; ++column) {
      *to++ = pair_of(w[0] * factor, w[1] * factor);
      *to++ = pair_of(w[1] * factor, w[2] * factor);
      w += 3;
    }
    *to++ = channel->start;
    ++channel;
  }
}

/// Where a row of the image begins, or a word of padding.
struct Row {
  const int8_t* from;
  int32_t step;
};

/// Four channels of two rows as pairs.
ORCH_HOT void pair_rows(Row a, Row b, int32_t columns, Pair* to) {
  for (const Pair* const end = to + columns * kColumnWords; to != end;) {
    const uint32_t first = load4(a.from);
    const uint32_t second = load4(b.from);
    a.from += a.step;
    b.from += b.step;
    // Channels 0 and 1 of both rows, then 2 and 3.
    uint32_t half;
    asm("pkhbt %0, %1, %2, lsl #16" : "=r"(half) : "r"(first), "r"(second));
    to[0] = even(half);
    to[2] = odd(half);
    asm("pkhtb %0, %1, %2, asr #16" : "=r"(half) : "r"(second), "r"(first));
    to[4] = even(half);
    to[6] = odd(half);
    to += kColumnWords;
  }
}

void run(const PackedCall& prepared) {
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
                  conv.channels};
  for (int32_t n = 0; n < conv.batch; ++n) {
    const PackedChannel* channel =
        static_cast<const PackedChannel*>(prepared.weights);
    for (int32_t c = 0; c < conv.channels; c += kChannels) {
      expand(channel, weights);
      channel += kChannels;
      int32_t row = -conv.rows.padding;
      int8_t* to = y + c;
      int32_t slot = 0;
      for (int32_t h = -outputs; h < conv.rows.out; h += outputs) {
        Row two_rows[2];
        for (Row& of : two_rows) {
          of = {reinterpret_cast<const int8_t*>(&padding), 0};
          if (static_cast<uint32_t>(row) <
              static_cast<uint32_t>(conv.rows.in)) {
            of = {image + row * line + c, conv.channels};
          }
          ++row;
        }
        pair_rows(two_rows[0], two_rows[1], conv.columns.in,
                  pairs + margin + slot);
        slot ^= 1;
        if (h < 0) continue;
        loop.line = h + 1 < conv.rows.out ? out_line : 0;
        if (stride == 1) {
          if (slot == 0) {
            orch_packed_two_rows(pairs, weights, to, &loop);
          } else {
            orch_packed_two_rows_swapped(pairs, weights, to, &loop);
          }
        } else {
          if (slot == 0) {
            orch_packed_row(pairs, weights, to, &loop);
          } else {
            orch_packed_row_swapped(pairs, weights, to, &loop);
          }
        }
        to += outputs * out_line;
      }
    }
    image += conv.rows.in * line;
    y += conv.rows.out * out_line;
  }
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
  run(static_cast<const PackedCall&>(call));
}

Error packed_depthwise_3x3_out(const Args& args) {
  return run_packed(packed_depthwise_3x3, args);
}

void limited_packed_depthwise_3x3(const PreparedCall& call) {
  run_limited<PackedDepthwise>(packed_depthwise_3x3, call);
}

Error limited_packed_depthwise_3x3_out(const Args& args) {
  return run_limited<PackedDepthwise>(packed_depthwise_3x3, args);
}

}  // namespace orch::cortex_m

#endif
