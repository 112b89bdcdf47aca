#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include "orch/kernel.h"
#include "packed.h"
#include "packed_limits.h"
#include "packed_strip.h"

namespace orch::cortex_m {
namespace {

/// Pixels of a column, whose windows have three lines. Known to the assembly.
struct Column {
  int32_t count;  // at least one
  int32_t skip;   // from the sixth line of a block to the next block
  int32_t blocks;
  int32_t channels;
  int32_t y_step;  // bytes, less than 16 K
  int32_t offset;  // added to outputs
};

// All output channels of some pixels, four pixels and two channels at a time.
// Their windows are six lines: each vector of a line is loaded once for all
// that see it.
extern "C" void orch_packed_lines(const int8_t* x, const uint8_t* tiles,
                                  int8_t* y, const Column* column);
asm(R"(
  .section .text.orch_packed_lines, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_lines
  .hidden orch_packed_lines
  .type orch_packed_lines, %function
  .thumb_func
orch_packed_lines:
  push {r4-r11, lr}
  vpush {d8-d15}
  @ 0: sums; 32: zeros; 64: x, tiles, pixels left, channels, blocks, offset;
  @ 88: from four pixels to the next ones; 92: y.
  sub sp, #100
  ldm r3, {r3, r4, r5, r6, r7, r8}
  strd r0, r1, [sp, #64]
  strd r3, r6, [sp, #72]
  strd r5, r8, [sp, #80]
  lsl r9, r7, #2
  strd r9, r2, [sp, #88]
  mov r5, r4
  movs r0, #0
  vdup.32 q0, r0
  vstrw.32 q0, [sp, #32]
  vstrw.32 q0, [sp, #48]
  @ Where the items of q0 go: both channels of each pixel.
  vidup.u16 q7, r0, #1
  vmov.i16 q0, #1
  vand q0, q0, q7
  vshr.u16 q7, q7, #1
  vmul.i16 q7, q7, r7
  vadd.i16 q7, q7, q0
  mov r7, r2
1:
  ldrd r2, r11, [sp, #72]
  vctp.32 r2
  ldr r1, [sp, #68]
2:
  add r0, sp, #32
  ldr r3, [sp, #64]
  ldr r9, [sp, #80]
  ldm r0, {r0, r2, r4, r6, r8, r10, r12, lr}
3:
  vldrb.8 q0, [r1], #16
  vldrb.8 q1, [r1], #16
  vldrb.8 q2, [r1], #16
  vldrb.8 q3, [r1], #16
  vldrb.8 q4, [r1], #16
  vldrb.8 q5, [r1], #16
  vldrb.8 q6, [r3], #16
  vmladava.s8 r0, q6, q0
  vmladava.s8 r8, q6, q3
  vldrb.8 q6, [r3], #16
  vmladava.s8 r2, q6, q0
  vmladava.s8 r10, q6, q3
  vmladava.s8 r0, q6, q1
  vmladava.s8 r8, q6, q4
  vldrb.8 q6, [r3], #16
  vmladava.s8 r4, q6, q0
  vmladava.s8 r12, q6, q3
  vmladava.s8 r2, q6, q1
  vmladava.s8 r10, q6, q4
  vmladava.s8 r0, q6, q2
  vmladava.s8 r8, q6, q5
  vldrb.8 q6, [r3], #16
  vmladava.s8 r6, q6, q0
  vmladava.s8 lr, q6, q3
  vmladava.s8 r4, q6, q1
  vmladava.s8 r12, q6, q4
  vmladava.s8 r2, q6, q2
  vmladava.s8 r10, q6, q5
  vldrb.8 q6, [r3], #16
  vmladava.s8 r6, q6, q1
  vmladava.s8 lr, q6, q4
  vmladava.s8 r4, q6, q2
  vmladava.s8 r12, q6, q5
  vldrb.8 q6, [r3], #16
  vmladava.s8 r6, q6, q2
  vmladava.s8 lr, q6, q5
  add r3, r5
  subs r9, #1
  bne 3b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  ldm r1!, {r0, r2, r4, r6, r8, r10}
  vldrw.32 q0, [sp]
  vadd.i32 q0, q0, r0
  vldrw.32 q1, [sp, #16]
  vadd.i32 q1, q1, r6
  ldr r12, [sp, #84]
  cmn r12, #128
  bne 6f
  vqrdmulh.s32 q0, q0, r2
  vqrdmulh.s32 q1, q1, r8
4:
  vrshl.s32 q0, r4
  vrshl.s32 q1, r10
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  vqadd.s16 q0, q0, r12
  vqmovnb.s16 q0, q0
  subs r11, #2
  bmi 7f
  vpst
  vstrbt.16 q0, [r7, q7]
  add r7, #2
  bne 2b
5:
  ldr r0, [sp, #64]
  ldr r1, [sp, #72]
  ldrd r2, r7, [sp, #88]
  add r0, #64
  add r7, r2
  str r0, [sp, #64]
  str r7, [sp, #92]
  subs r1, #4
  str r1, [sp, #72]
  bgt 1b
  add sp, #100
  vpop {d8-d15}
  pop {r4-r11, pc}
6:
  @ Ties of negative numbers go down, for which they are made smaller by one.
  @ All are shifted; outputs below the lowest item saturate.
  vshr.s32 q2, q0, #31
  vqrdmlah.s32 q2, q0, r2
  vshr.s32 q3, q1, #31
  vqrdmlah.s32 q3, q1, r8
  vmov q0, q2
  vmov q1, q3
  b 4b
7:
  vmrs r0, p0
  movw r2, #0x3333
  ands r0, r2
  vmsr p0, r0
  vpst
  vstrbt.16 q0, [r7, q7]
  b 5b
  .size orch_packed_lines, . - orch_packed_lines
  .text
)");

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedLines, `weights` tiles of two channels; `scratch` has
// room for a strip. The build has checked everything.
void packed_lines(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* image = static_cast<const int8_t*>(call.input);
  const PackedLines* const packed =
      static_cast<const PackedLines*>(call.header);
  int8_t* const strip = static_cast<int8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const uint8_t* const tiles = static_cast<const uint8_t*>(call.weights);
  const PackedConvolution& conv = packed->conv;
  Axis axis = conv.rows;
  axis.kernel += packed->pixels - 1;
  const int32_t block = axis.kernel * 16;
  const PackedSteps& steps = packed->steps;
  const Strip to = {16, block, conv.in_channels / 16 * block, steps};
  Column column = {
      0,          block - 96, packed->blocks, conv.out_channels, steps.y_line,
      conv.offset};
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t v = 0; v < conv.columns.out; ++v) {
      const Taps columns = taps_at(conv.columns, v);
      for (int32_t h = 0; h < axis.out; h += packed->pixels) {
        gather_lines(conv, image + columns.in * steps.x_pixel, columns, axis, h,
                     strip, to, packed->blocks * block);
        column.count = axis.out - h;
        if (column.count > packed->pixels) column.count = packed->pixels;
        orch_packed_lines(strip, tiles, y + h * steps.y_line, &column);
      }
      y += steps.y_pixel;
    }
    // Calls of several images have rows as lines.
    y += (axis.out - 1) * steps.y_line;
    image += conv.rows.in * steps.x_line;
  }
}

Error packed_lines_out(const Args& args) {
  return run_packed(packed_lines, args);
}

// The same with limits: `int low, int high` in front of `out`.
void limited_packed_lines(const PreparedCall& call) {
  run_limited<PackedLines>(packed_lines, call);
}

Error limited_packed_lines_out(const Args& args) {
  return run_limited<PackedLines>(packed_lines, args);
}

}  // namespace orch::cortex_m

#endif
