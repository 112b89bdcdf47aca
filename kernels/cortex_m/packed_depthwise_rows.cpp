// Depthwise windows of 3 x 3 for a band of one row, or of two if they move by
// one.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "packed_dsp.h"
#include "packed_limits.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

constexpr int32_t kWindow = 3;
/// Channels that are computed together.
constexpr int32_t kChannels = 4;
/// Words of a column: for each channel a pair of the two upper rows; then one
/// of the two lower ones, or of the only one an input in the lower half.
constexpr int32_t kColumnWords = 2 * kChannels;

/// What the assembly takes. Known to it.
template <int32_t kRows>
struct RowsCall {
  const int8_t* rows[kRows];  // of the first column, or a word of padding
  int32_t step[kRows];        // from a column to the next one, or 0
  int32_t next[kRows];        // from four channels to the next ones, or 0
  Pair* image;                // columns of the image
  Pair* image_end;
  const PackedChannel* w;
  int8_t* y;
  const Pair* x;   // columns of the first window
  int32_t count;   // of outputs in a row, times 256
  int32_t offset;  // added to outputs, as PackedChannel has what is added
  int32_t channels;
  int32_t below;  // from an output to the one in the next row; 0: there is none
  const Pair* x_end;
  const PackedChannel* w_end;
  int32_t line;  // from a row to the next one; 0: some are padding
};

// A row of outputs, four channels after the other; `call` is changed. The
// inputs of four channels are paired first; weights of a channel stay in
// registers. Sums are shifted where those of the other function have shifted
// weights: most rows have fewer outputs than a channel has weights. Two columns
// of outputs share columns of inputs: two if windows move by one, one if they
// move by two.
extern "C" void orch_packed_one_row(RowsCall<3>* call);
extern "C" void orch_packed_one_row_by_two(RowsCall<3>* call);
asm(R"(
  .syntax unified
  @ Adds the products of a column: t and m are weights of the upper rows, b is
  @ one half of a register.
  .macro orch_add_column sum, tm, half, b, start
  smlad \sum, r0, \tm, \start
  smlab\half \sum, lr, \b, \sum
  .endm
  .macro orch_one_row name, stride
  .section .text.\name, "ax", %progbits
  .thumb
  .balign 4
  .globl \name
  .hidden \name
  .type \name, %function
  .thumb_func
\name:
  push {r4-r11, lr}
  adds r0, #44
  @ 0: multiplier, what is added; 8: `w` of the call.
  sub sp, #12
  str r0, [sp, #8]
1:
  ldr r0, [sp, #8]
  subs r0, #44
  ldm r0, {r1-r11}
  add r7, r1
  add r8, r2
  add r9, r3
  stm r0, {r7, r8, r9}
  ldr r0, [r0, #80]
  cbz r0, 2f
  mov r2, r0
  lsls r3, r0, #1
7:
  ldr r7, [r1]
  ldr r9, [r1, r2]
  ldr lr, [r1, r3]
  add r1, r4
  pkhbt r6, r7, r9, lsl #16
  pkhtb r8, r9, r7, asr #16
  sxtb16 r0, r6
  sxtb16 r6, r6, ror #8
  sxtb16 r12, r8, ror #8
  sxtb16 r8, r8
  sxtb r5, lr
  sxtb r7, lr, ror #8
  sxtb r9, lr, ror #16
  asr lr, lr, #24
  stm r10!, {r0, r5-r9, r12, lr}
  cmp r10, r11
  bne 7b
  b 3f
2:
  ldr r7, [r1]
  ldr r8, [r2]
  ldr r0, [r3]
  add r1, r4
  add r2, r5
  add r3, r6
  @ Channels 0 and 1 of the upper rows, then 2 and 3.
  pkhbt r9, r7, r8, lsl #16
  pkhtb lr, r8, r7, asr #16
  sxtb16 r7, r9
  sxtb r8, r0
  sxtb16 r9, r9, ror #8
  sxtb r12, r0, ror #8
  stm r10!, {r7, r8, r9, r12}
  sxtb16 r7, lr
  sxtb r8, r0, ror #16
  sxtb16 r9, lr, ror #8
  asr r12, r0, #24
  stm r10!, {r7, r8, r9, r12}
  cmp r10, r11
  bne 2b
3:
  ldr lr, [sp, #8]
  ldm lr, {r0, r1, r2, r3, r9, r12}
  ldm r0!, {r4-r8}
  add r10, r1, #1
  add r11, r2, #32 / 4
  stm lr, {r0, r10, r11}
  sxtah r9, r9, r6
  strd r5, r9, [sp]
  @ Outputs that are left, and bits to shift.
  uxtab r3, r3, r6, ror #16
  asr r4, r3
  @ Weights, by row and column: r7: 00 and 10; r9: 01 and 11; r10: 02 and 12;
  @ r8: 20 and 21; r6: 22.
  sxtb16 r9, r7, ror #8
  sxtb16 r7, r7
  sxtb16 r10, r8
  sxtb16 r8, r8, ror #8
  asr r6, #24
  subs r3, #2 << 8
  blo 5f
4:
  ldrd r0, lr, [r2], #64 * \stride
  orch_add_column r5, r7, b, r8, r4
  .if \stride == 1
  ldrd r0, lr, [r2, #-32]
  orch_add_column r5, r9, t, r8, r5
  orch_add_column r11, r7, b, r8, r4
  ldrd r0, lr, [r2]
  orch_add_column r5, r10, b, r6, r5
  orch_add_column r11, r9, t, r8, r11
  ldrd r0, lr, [r2, #32]
  .else
  ldrd r0, lr, [r2, #-96]
  orch_add_column r5, r9, t, r8, r5
  ldrd r0, lr, [r2, #-64]
  orch_add_column r5, r10, b, r6, r5
  orch_add_column r11, r7, b, r8, r4
  ldrd r0, lr, [r2, #-32]
  orch_add_column r11, r9, t, r8, r11
  ldrd r0, lr, [r2]
  .endif
  orch_add_column r11, r10, b, r6, r11
  ldrd r0, lr, [sp]
  lsl r5, r3
  lsl r11, r3
  smmla r5, r5, r0, lr
  smmla r11, r11, r0, lr
  ssat r5, #8, r5, asr #11
  ssat r11, #8, r11, asr #11
  strb r5, [r1]
  strb r11, [r1, r12]
  add r1, r1, r12, lsl #1
  subs r3, #2 << 8
  bhs 4b
5:
  @ An odd last one.
  lsls r0, r3, #31 - 8
  bpl 6f
  ldrd r0, lr, [r2], #64
  orch_add_column r5, r7, b, r8, r4
  ldrd r0, lr, [r2, #-32]
  orch_add_column r5, r9, t, r8, r5
  ldrd r0, lr, [r2]
  orch_add_column r5, r10, b, r6, r5
  ldrd r0, lr, [sp]
  lsl r5, r3
  smmla r5, r5, r0, lr
  ssat r5, #8, r5, asr #11
  strb r5, [r1]
6:
  ldr r2, [sp, #8]
  ldr r0, [r2, #8]
  ldr r1, [r2, #28]
  cmp r0, r1
  bne 3b
  subs r0, #32
  str r0, [r2, #8]
  ldr r0, [r2]
  ldr r1, [r2, #32]
  cmp r0, r1
  bne 1b
  add sp, #12
  pop {r4-r11, pc}
  .size \name, . - \name
  .endm
  orch_one_row orch_packed_one_row, 1
  orch_one_row orch_packed_one_row_by_two, 2
  .purgem orch_add_column
  .purgem orch_one_row
  .text
)");

// The same for two rows: inputs are paired with those below them, and so are
// weights, each of the first two with the one below. The lower output is stored
// first: if there is no second row, the upper one stays.
extern "C" void orch_packed_both_rows(RowsCall<4>* call);
asm(R"(
  .syntax unified
  @ Four products of a column: r0 is the upper pair, lr the lower one.
  .macro orch_add_both upper, lower, start0=r5, start1=r6
  smlad r5, r0, \upper, \start0
  smlatb r6, r0, \upper, \start1
  smlabb r5, lr, \lower, r5
  smladx r6, lr, \lower, r6
  .endm
  .section .text.orch_packed_both_rows, "ax", %progbits
  .thumb
  .balign 4
  .globl orch_packed_both_rows
  .hidden orch_packed_both_rows
  .type orch_packed_both_rows, %function
  .thumb_func
orch_packed_both_rows:
  push {r4-r11, lr}
  adds r0, #56
  @ 0: multiplier, what is added; 8: channels, `below`; 16: `w` of the call.
  sub sp, #20
  ldrd r1, r2, [r0, #20]
  strd r1, r2, [sp, #8]
  str r0, [sp, #16]
1:
  ldr r12, [sp, #16]
  ldr r2, [r12, #36]
  ldrd r10, r11, [r12, #-8]
  subs r12, #56
  cbz r2, 2f
  ldr r1, [r12]
  ldr r4, [r12, #16]
  adds r0, r1, #4
  str r0, [r12]
  add r3, r2, r2, lsl #1
7:
  @ Channels 0 and 1, then 2 and 3, of the upper rows; then of the lower ones.
  ldr r0, [r1]
  ldr r6, [r1, r2]
  ldr r5, [r1, r2, lsl #1]
  ldr r7, [r1, r3]
  add r1, r4
  pkhbt r8, r0, r6, lsl #16
  pkhtb r12, r6, r0, asr #16
  pkhbt r9, r5, r7, lsl #16
  pkhtb lr, r7, r5, asr #16
  sxtb16 r0, r8
  sxtb16 r6, r8, ror #8
  sxtb16 r8, r12
  sxtb16 r12, r12, ror #8
  sxtb16 r5, r9
  sxtb16 r7, r9, ror #8
  sxtb16 r9, lr
  sxtb16 lr, lr, ror #8
  stm r10!, {r0, r5-r9, r12, lr}
  cmp r10, r11
  bne 7b
  b 3f
2:
  @ One pair after the other.
  ldrd r1, r2, [r12]
  ldrd r3, r4, [r12, #16]
  ldrd r5, r6, [r12, #32]
  add r5, r1
  add r6, r2
  strd r5, r6, [r12], #8
  mov r0, r10
8:
  ldr r5, [r1]
  ldr r6, [r2]
  add r1, r3
  add r2, r4
  pkhbt r7, r5, r6, lsl #16
  pkhtb r8, r6, r5, asr #16
  sxtb16 r5, r7
  sxtb16 r6, r7, ror #8
  sxtb16 r7, r8
  sxtb16 r8, r8, ror #8
  str r5, [r0], #32
  str r6, [r0, #-24]
  str r7, [r0, #-16]
  str r8, [r0, #-8]
  cmp r0, r11
  bne 8b
  add r10, #4
  add r11, #4
  ldr r0, [sp, #16]
  subs r0, #40
  cmp r0, r12
  bne 2b
3:
  ldr lr, [sp, #16]
  ldm lr, {r0, r1, r2, r3, r9}
  ldm r0!, {r4-r8}
  add r10, r1, #1
  add r11, r2, #32 / 4
  stm lr, {r0, r10, r11}
  sxtah r9, r9, r6
  strd r5, r9, [sp]
  @ Outputs that are left but one, and bits to shift.
  uxtab r3, r3, r6, ror #16
  sub r3, #1 << 8
  asr r4, r3
  @ Weights, by row and column: r7: 00 and 10; r9: 01 and 11; r10: 02 and 12;
  @ r11: 20 and 10; r12: 21 and 11; r8: 22 and 12.
  sxtb16 r9, r7, ror #8
  sxtb16 r7, r7
  sxtb16 r10, r8
  sxtb16 r8, r8, ror #8
  pkhbt r11, r8, r7
  pkhtb r12, r9, r8, asr #16
  pkhtb r8, r10, r6, asr #24
4:
  ldrd r0, lr, [r2], #32
  orch_add_both r7, r11, r4, r4
  ldrd r0, lr, [r2]
  orch_add_both r9, r12
  ldrd r0, lr, [r2, #32]
  orch_add_both r10, r8
  ldrd r0, lr, [sp]
  lsl r5, r3
  lsl r6, r3
  smmla r5, r5, r0, lr
  smmla r6, r6, r0, lr
  ssat r5, #8, r5, asr #11
  ssat r6, #8, r6, asr #11
  ldrd r0, lr, [sp, #8]
  strb r6, [r1, lr]
  strb r5, [r1]
  add r1, r0
  subs r3, #1 << 8
  bhs 4b
  ldr r2, [sp, #16]
  ldr r0, [r2, #8]
  ldr r1, [r2, #28]
  cmp r0, r1
  bne 3b
  subs r0, #32
  str r0, [r2, #8]
  ldr r0, [r2]
  ldr r1, [r2, #32]
  cmp r0, r1
  bne 1b
  add sp, #20
  pop {r4-r11, pc}
  .size orch_packed_both_rows, . - orch_packed_both_rows
  .purgem orch_add_both
  .text
)");

/// A band, some columns of outputs at a time.
template <int32_t kRows, int32_t kStride>
ORCH_ALWAYS_INLINE void run(const PreparedCall& prepared) {
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
  rows.w_end = w + channels;
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
    rows.line = line;
    const int8_t* from = static_cast<const int8_t*>(call.input) -
                         conv.rows.padding * line + first * channels;
    ORCH_FEW_ROUNDS
    for (int32_t i = 0; i < kRows; ++i) {
      const bool inside = static_cast<uint32_t>(i - conv.rows.padding) <
                          static_cast<uint32_t>(conv.rows.in);
      rows.rows[i] = inside ? from : reinterpret_cast<const int8_t*>(&padding);
      rows.step[i] = inside ? channels : 0;
      rows.next[i] = inside ? kChannels : 0;
      if (!inside) rows.line = 0;
      from += line;
    }
    rows.w = w;
    rows.x = pairs;
    rows.y = y;
    rows.count = count << 8;
    if constexpr (kRows != kWindow) {
      orch_packed_both_rows(&rows);
    } else if constexpr (kStride == 1) {
      orch_packed_one_row(&rows);
    } else {
      orch_packed_one_row_by_two(&rows);
    }
    y += count * channels;
    begin += count * kStride;
    left -= count;
  } while (left != 0);
}

}  // namespace

// Prepared: what packed_depthwise_3x3 does, for a band of one row. Both have
// the same tensors, but `scratch` holds pairs of inputs alone: of the columns
// that `pairs` outputs need.
ORCH_HOT void packed_depthwise_row(const PreparedCall& call) {
  run<kWindow, 1>(call);
}

// The same for windows that move by two.
ORCH_HOT void packed_depthwise_row_by_two(const PreparedCall& call) {
  run<kWindow, 2>(call);
}

// The same as the first one for a band of one or two rows.
ORCH_HOT void packed_depthwise_two_rows(const PreparedCall& call) {
  run<kWindow + 1, 1>(call);
}

// The same with limits.
void limited_packed_depthwise_row(const PreparedCall& call) {
  run_limited<PackedDepthwise>(packed_depthwise_row, call);
}

void limited_packed_depthwise_row_by_two(const PreparedCall& call) {
  run_limited<PackedDepthwise>(packed_depthwise_row_by_two, call);
}

void limited_packed_depthwise_two_rows(const PreparedCall& call) {
  run_limited<PackedDepthwise>(packed_depthwise_two_rows, call);
}

}  // namespace orch::cortex_m

#endif
