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
extern "C" {
using Loop = void(const int8_t* x, const uint8_t* tiles, int8_t* y,
                  const Column* column);
Loop orch_packed_lines;
#if ORCH_FAVOUR_SPEED
// The same for an even number of channels, and three times as many blocks as
// `blocks`: if outputs begin at the lowest item, and if not.
Loop orch_packed_lines_3;
Loop orch_packed_lines_3_ties;
#endif
}
asm(R"(
  .syntax unified
  @ Six vectors of weights of two channels, and of a line of each of six.
  .macro orch_six_lines
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
  .endm

  @ Ties of negative numbers go down, for which they are made smaller by one.
  @ All are shifted; outputs below the lowest item saturate.
  .macro orch_multiply_ties
  vshr.s32 q2, q0, #31
  vqrdmlah.s32 q2, q0, r2
  vshr.s32 q3, q1, #31
  vqrdmlah.s32 q3, q1, r8
  .endm

  @ `ties`: whether outputs have them; 2 if only the call knows.
  .macro orch_lines name, fast, ties
  .section .text.\name, "ax", %progbits
  .thumb
  .balign 4
  .globl \name
  .hidden \name
  .type \name, %function
  .thumb_func
\name:
  push {r4-r11, lr}
  vpush {d8-d15}
  @ 0: sums; 32: zeros, but for x at 40 and blocks at 56;
  @ 72: tiles, pixels left, channels, offset;
  @ 88: from four pixels to the next ones; 92: y.
  sub sp, #100
  ldm r3, {r3, r4, r5, r6, r7, r8}
  strd r1, r3, [sp, #72]
  strd r6, r8, [sp, #80]
  lsl r9, r7, #2
  strd r9, r2, [sp, #88]
  movs r6, #0
  vdup.32 q0, r6
  vstrw.32 q0, [sp, #32]
  vstrw.32 q0, [sp, #48]
  strd r6, r6, [sp, #64]
  str r0, [sp, #40]
  str r5, [sp, #56]
  mov r5, r4
  @ Where the items of q0 go: both channels of each pixel.
  vidup.u16 q7, r6, #1
  vmov.i16 q0, #1
  vand q0, q0, q7
  vshr.u16 q7, q7, #1
  vmul.i16 q7, q7, r7
  vadd.i16 q7, q7, q0
  mov r7, r2
1:
  ldrd r1, r2, [sp, #72]
  ldr r11, [sp, #80]
  vctp.32 r2
2:
  add r0, sp, #32
  ldm r0, {r0, r2, r3, r4, r6, r8, r9, r10, r12, lr}
3:
  orch_six_lines
  .if \fast
  orch_six_lines
  orch_six_lines
  .endif
  subs r9, #1
  bne 3b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  ldm r1!, {r0, r2, r4, r6, r8, r10}
  vldrw.32 q0, [sp]
  vadd.i32 q0, q0, r0
  vldrw.32 q1, [sp, #16]
  vadd.i32 q1, q1, r6
  ldr r12, [sp, #84]
  .if \ties == 2
  cmn r12, #128
  bne 6f
  .endif
  .if \ties == 1
  orch_multiply_ties
  vrshl.s32 q2, r4
  vrshl.s32 q3, r10
  vqmovnb.s32 q0, q2
  vqmovnt.s32 q0, q3
  .else
  vqrdmulh.s32 q0, q0, r2
  vqrdmulh.s32 q1, q1, r8
4:
  vrshl.s32 q0, r4
  vrshl.s32 q1, r10
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  .endif
  vqadd.s16 q0, q0, r12
  vqmovnb.s16 q0, q0
  subs r11, #2
  .ifeq \fast
  bmi 7f
  .endif
  vpst
  vstrbt.16 q0, [r7, q7]
  add r7, #2
  bne 2b
5:
  ldr r0, [sp, #40]
  ldr r1, [sp, #76]
  ldrd r2, r7, [sp, #88]
  add r0, #64
  add r7, r2
  str r0, [sp, #40]
  str r7, [sp, #92]
  subs r1, #4
  str r1, [sp, #76]
  bgt 1b
  add sp, #100
  vpop {d8-d15}
  pop {r4-r11, pc}
  .ifeq \fast
6:
  orch_multiply_ties
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
  .endif
  .size \name, . - \name
  .endm

  orch_lines orch_packed_lines, 0, 2
)"
#if ORCH_FAVOUR_SPEED
    "orch_lines orch_packed_lines_3, 1, 0\n"
    "orch_lines orch_packed_lines_3_ties, 1, 1\n"
#endif
    ".purgem orch_six_lines\n"
    ".purgem orch_multiply_ties\n"
    ".purgem orch_lines\n"
    ".text\n");

/// Copies lines of each of some columns to their places in a strip, where 16
/// items of a line are beside those of the next one, `block` bytes before the
/// next items.
void copy_column(const PackedConvolution& conv, const PackedSteps& steps,
                 const int8_t* image, const Taps& columns, const Taps& lines,
                 int8_t* strip, int32_t block) {
  if (lines.count <= 0) return;
  image += columns.in * steps.x_pixel + lines.in * steps.x_line;
  strip += lines.first * 16 + columns.first * (conv.in_channels / 16) * block;
  for (int32_t left = columns.count; left > 0; --left) {
    for (int32_t i = 0; i < conv.in_channels; i += 16) {
      const int8_t* x = image + i;
      int8_t* y = strip;
      asm volatile(
          "dls lr, %[lines]\n"
          "1:\n"
          "vldrb.8 q0, [%[x]]\n"
          "add %[x], %[x], %[x_line]\n"
          "vstrb.8 q0, [%[y]], #16\n"
          "le lr, 1b\n"
          : [x] "+l"(x), [y] "+l"(y)
          : [lines] "r"(lines.count), [x_line] "r"(steps.x_line)
          : "lr", "q0", "memory");
      strip += block;
    }
    image += conv.columns.dilation * steps.x_pixel;
  }
}

/// Computes all channels of a column. Which loop is no pointer: that could then
/// be to any function, as far as bounds on the stack know.
ORCH_ALWAYS_INLINE void compute_column(const int8_t* strip,
                                       const uint8_t* tiles, int8_t* y,
                                       const Column& column,
                                       [[maybe_unused]] bool by_three) {
#if ORCH_FAVOUR_SPEED
  if (by_three && column.offset == -128) {
    orch_packed_lines_3(strip, tiles, y, &column);
  } else if (by_three) {
    orch_packed_lines_3_ties(strip, tiles, y, &column);
  } else
#endif
  {
    orch_packed_lines(strip, tiles, y, &column);
  }
}

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
  const int32_t bytes = packed->blocks * block;
  const PackedSteps& steps = packed->steps;
  Column column = {
      0,          block - 96, packed->blocks, conv.out_channels, steps.y_line,
      conv.offset};
  const bool by_three =
      kFavourSpeed && column.blocks % 3 == 0 && column.channels % 2 == 0;
  if (by_three) column.blocks /= 3;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < axis.out; h += packed->pixels) {
      const Taps lines = taps_at(axis, h);
      column.count = axis.out - h;
      if (column.count > packed->pixels) column.count = packed->pixels;
      int8_t* to = y + h * steps.y_line;
      // Whether padding of lines is in the strip, where it stays.
      bool is_padded = lines.count == axis.kernel;
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        const bool is_inside = columns.count == conv.columns.kernel;
        if (!is_inside || !is_padded) fill(strip, bytes, conv.padding);
        is_padded = true;
        copy_column(conv, steps, image, columns, lines, strip, block);
        compute_column(strip, tiles, to, column, by_three);
        to += steps.y_pixel;
      }
    }
    // Calls of several images have rows as lines.
    y += conv.columns.out * steps.y_pixel + (axis.out - 1) * steps.y_line;
    image += conv.rows.in * steps.x_line;
  }
}
ORCH_PACKED_FORMS(PackedLines, packed_lines, limited_packed_lines)

}  // namespace orch::cortex_m

#endif
