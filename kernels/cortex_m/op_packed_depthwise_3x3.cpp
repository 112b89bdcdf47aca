#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "tile_dsp.h"
#include "unroll.h"

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

// Where speed counts, two columns of outputs at a time: they share two of their
// columns of inputs. An odd last one is left.
#if !ORCH_FAVOUR_SPEED
#define ORCH_FIND_PAIRS ""
#define ORCH_TWO_COLUMNS ""
#else
#define ORCH_FIND_PAIRS \
  "  and r7, r4, #32\n" \
  "  bic r4, r4, #32\n" \
  "  str r7, [sp, #44]\n"
#define ORCH_TWO_COLUMNS "  orch_two_columns \\upper, \\lower\n"
#endif

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
  .macro orch_column upper, lower, w01, w12, sum0=r7, sum1=r8
  smlad \sum0, \upper, \w01, \sum0
  smlatb \sum1, \upper, \w01, \sum1
  smlabt \sum0, \lower, \w12, \sum0
  smlad \sum1, \lower, \w12, \sum1
  .endm
  @ 0: multiplier, what is added; 8: line, channels; 16: x, y; 24: bytes of
  @ columns, end of x; 32: w; 36: end of pairs of columns, start, and
  @ the bytes of an odd column of outputs.
  @
  @ Four channels; leaves weights in r5, r6, r9 to r12, and the start in lr.
  .macro orch_begin_rows name, two_columns
  .section .text.\name, "ax", %progbits
  .thumb
  .balign 4
  .globl \name
  .hidden \name
  .type \name, %function
  .thumb_func
\name:
  push {r4-r11, lr}
  sub sp, #52
  ldm r3, {r4, r5, r6}
  .ifnb \two_columns
)" ORCH_FIND_PAIRS R"(
  .endif
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
  ldrd r0, r2, [sp, #16]
  adds r0, #8
  adds r2, #1
  strd r0, r2, [sp, #16]
  ldrd r3, r1, [sp, #28]
  cmp r0, r3
  bne 1b
  add sp, #52
  pop {r4-r11, pc}
  .size \name, . - \name
  .endm
  .macro orch_two_columns upper, lower
  strd r1, lr, [sp, #36]
  cmp r0, r1
  beq 5f
4:
  ldr r1, [sp, #40]
  ldrd r3, r4, [r0], #64
  smlad r7, \upper, r5, r1
  smlatb r8, \upper, r5, r1
  smlabt r7, \lower, r6, r7
  smlad r8, \lower, r6, r8
  ldrd r3, r4, [r0, #-32]
  orch_column \upper, \lower, r9, r10
  smlad lr, \upper, r5, r1
  smlatb r1, \upper, r5, r1
  smlabt lr, \lower, r6, lr
  smlad r1, \lower, r6, r1
  ldrd r3, r4, [r0]
  orch_column \upper, \lower, r11, r12
  orch_column \upper, \lower, r9, r10, lr, r1
  ldrd r3, r4, [r0, #32]
  orch_column \upper, \lower, r11, r12, lr, r1
  ldrd r3, r4, [sp]
  smmla r7, r7, r3, r4
  smmla r8, r8, r3, r4
  smmla lr, lr, r3, r4
  smmla r1, r1, r3, r4
  ssat r7, #8, r7, asr #11
  ssat r8, #8, r8, asr #11
  ssat lr, #8, lr, asr #11
  ssat r1, #8, r1, asr #11
  ldrd r3, r4, [sp, #8]
  strb r8, [r2, r3]
  strb r7, [r2]
  add r2, r4
  strb r1, [r2, r3]
  strb lr, [r2]
  add r2, r4
  ldr r3, [sp, #36]
  cmp r0, r3
  bne 4b
5:
  ldr r1, [sp, #44]
  cbz r1, 3f
  ldr lr, [sp, #40]
  add r1, r0
  .endm
  .macro orch_two_rows name, upper, lower
  orch_begin_rows \name, two_columns
)" ORCH_TWO_COLUMNS R"(
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
  cmp r0, r1
  bne 2b
3:
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
  cmp r0, r1
  bne 2b
  orch_end_rows \name
  .endm
  orch_two_rows orch_packed_two_rows, r3, r4
  orch_two_rows orch_packed_two_rows_swapped, r4, r3
  orch_row orch_packed_row, r3, r4
  orch_row orch_packed_row_swapped, r4, r3
  .purgem orch_column
  .purgem orch_begin_rows
  .purgem orch_end_rows
  .purgem orch_two_columns
  .purgem orch_two_rows
  .purgem orch_row
  .text
)");

/// The lower halves of two numbers as a pair.
ORCH_ALWAYS_INLINE Pair pair_of(int32_t low, int32_t high) {
  Pair pair;
  asm("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(low), "r"(high));
  return pair;
}

/// Four channels as the assembly reads them.
ORCH_HOT void expand(const PackedChannel* channel, int32_t* to) {
  constexpr int32_t kOffset = INT8_MIN * (1 << 11);
  for (const PackedChannel* const end = channel + kChannels; channel != end;
       ++channel) {
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

/// Where a row of the image begins, or a word of padding. Known to the
/// assembly.
struct Row {
  const int8_t* from;
  int32_t step;
};

// Four channels of two rows as pairs. r0: `rows`; r1: `to`; r2: `end`.
extern "C" void orch_pair_rows(const Row* rows, Pair* to, const Pair* end);
asm(R"(
  .section .text.orch_pair_rows, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_pair_rows
  .hidden orch_pair_rows
  .type orch_pair_rows, %function
  .thumb_func
orch_pair_rows:
  push {r4-r8, lr}
  ldm r0, {r0, r3, r4, r5}
1:
  ldr r6, [r0]
  ldr r7, [r4]
  add r0, r3
  add r4, r5
  @ Channels 0 and 1 of both rows, then 2 and 3.
  pkhbt r8, r6, r7, lsl #16
  pkhtb r12, r7, r6, asr #16
  sxtb16 r6, r8
  sxtb16 r7, r8, ror #8
  sxtb16 r8, r12
  sxtb16 r12, r12, ror #8
  str r6, [r1], #32
  str r7, [r1, #-24]
  str r8, [r1, #-16]
  str r12, [r1, #-8]
  cmp r1, r2
  bne 1b
  pop {r4-r8, pc}
  .size orch_pair_rows, . - orch_pair_rows
  .text
)");

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
        Pair* const first = pairs + margin + slot;
        orch_pair_rows(two_rows, first, first + conv.columns.in * kColumnWords);
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
