// Depthwise windows of 3 x 3 that move by one or two, for a band of one row.
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
/// Words of a column: for each channel a pair of the two upper rows, and an
/// input of the last one in the lower half.
constexpr int32_t kColumnWords = 2 * kChannels;

/// What `orch_packed_one_row` takes. Known to the assembly.
struct RowCall {
  const int8_t* rows[kWindow];  // of the first column, or a word of padding
  int32_t step[kWindow];        // from a column to the next one, or 0
  int32_t next[kWindow];        // from four channels to the next ones, or 0
  Pair* image;                  // columns of the image
  Pair* image_end;
  const PackedChannel* w;
  int8_t* y;
  const Pair* x;   // columns of the first window
  int32_t count;   // of outputs in a channel, times 256
  int32_t offset;  // added to outputs, as PackedChannel has what is added
  int32_t channels;
  const Pair* x_end;
  const PackedChannel* w_end;
  int32_t line;  // from a row to the next one; 0: some are padding
};

// A row of outputs, four channels after the other. Its argument lies on the
// stack, and is changed. The inputs of four channels are paired first; weights
// of a channel stay in registers. Sums are shifted where those of the other
// function have shifted weights: most rows have fewer outputs than a channel
// has weights. Two columns of outputs share columns of inputs: two if windows
// move by one, one if they move by two.
extern "C" void orch_packed_one_row(RowCall call);
extern "C" void orch_packed_one_row_by_two(RowCall call);
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
  push {r0-r3}
  push {r4-r11, lr}
  @ 0: multiplier, what is added; 44: the argument.
  sub sp, #8
1:
  add r0, sp, #44
  ldm r0, {r1-r11}
  add r7, r1
  add r8, r2
  add r9, r3
  stm r0, {r7, r8, r9}
  ldr r0, [sp, #120]
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
  add lr, sp, #88
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
  ldr r0, [sp, #96]
  ldr r1, [sp, #112]
  cmp r0, r1
  bne 3b
  subs r0, #32
  str r0, [sp, #96]
  ldr r0, [sp, #88]
  ldr r1, [sp, #116]
  cmp r0, r1
  bne 1b
  add sp, #8
  pop {r4-r11, lr}
  add sp, #16
  bx lr
  .size \name, . - \name
  .endm
  orch_one_row orch_packed_one_row, 1
  orch_one_row orch_packed_one_row_by_two, 2
  .purgem orch_add_column
  .purgem orch_one_row
  .text
)");

/// A band of one row, some columns of outputs at a time.
template <int32_t kStride>
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
  RowCall row;
  row.w = w;
  row.x = pairs;
  row.offset = INT8_MIN * (1 << 11);
  row.channels = channels;
  row.x_end = pairs + kColumnWords;
  row.w_end = w + channels;
  int8_t* y = static_cast<int8_t*>(call.out);
  int32_t left = conv.columns.out;
  // Of the window that is next.
  int32_t begin = -conv.columns.padding;
  do {
    const int32_t count = left < conv.pairs ? left : conv.pairs;
    const int32_t end = begin + (count - 1) * kStride + kWindow;
    const int32_t first = begin < 0 ? 0 : begin;
    const int32_t last = end < conv.columns.in ? end : conv.columns.in;
    row.image = pairs + (first - begin) * kColumnWords;
    row.image_end = pairs + (last - begin) * kColumnWords;
    ORCH_FEW_ROUNDS
    for (Pair* to = pairs; to != row.image; ++to) *to = two;
    Pair* const pairs_end = pairs + (end - begin) * kColumnWords;
    ORCH_FEW_ROUNDS
    for (Pair* to = row.image_end; to != pairs_end; ++to) *to = two;
    row.line = line;
    const int8_t* from = static_cast<const int8_t*>(call.input) -
                         conv.rows.padding * line + first * channels;
    ORCH_FEW_ROUNDS
    for (int32_t i = 0; i < kWindow; ++i) {
      const bool inside = static_cast<uint32_t>(i - conv.rows.padding) <
                          static_cast<uint32_t>(conv.rows.in);
      row.rows[i] = inside ? from : reinterpret_cast<const int8_t*>(&padding);
      row.step[i] = inside ? channels : 0;
      row.next[i] = inside ? kChannels : 0;
      if (!inside) row.line = 0;
      from += line;
    }
    row.y = y;
    row.count = count << 8;
    if constexpr (kStride == 1) {
      orch_packed_one_row(row);
    } else {
      orch_packed_one_row_by_two(row);
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
ORCH_HOT void packed_depthwise_row(const PreparedCall& call) { run<1>(call); }

// The same for windows that move by two.
ORCH_HOT void packed_depthwise_row_by_two(const PreparedCall& call) {
  run<2>(call);
}

// The same with limits.
void limited_packed_depthwise_row(const PreparedCall& call) {
  run_limited<PackedDepthwise>(packed_depthwise_row, call);
}

void limited_packed_depthwise_row_by_two(const PreparedCall& call) {
  run_limited<PackedDepthwise>(packed_depthwise_row_by_two, call);
}

}  // namespace orch::cortex_m

#endif
