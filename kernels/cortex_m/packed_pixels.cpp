// The assembly of packed_pixels.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <stddef.h>

#include "packed_pixels.h"

namespace orch::cortex_m {

static_assert(offsetof(PackedPixel, conv.out_channels) == 56 &&
                  offsetof(PackedPixel, conv.depth) == 60 &&
                  offsetof(PackedPixel, conv.offset) == 68 &&
                  offsetof(PackedPixel, multiplier) == 72,
              "the assembly knows where things are");

}  // namespace orch::cortex_m

asm(R"(
  .syntax unified
  .macro orch_begin name
  .section .text.\name, "ax", %progbits
  .thumb
  .balign 4
  .globl \name
  .hidden \name
  .type \name, %function
  .thumb_func
\name:
  .endm
  @ From results in q0 and q1 to items in turn, in the 16-bit lanes of q0.
  .macro orch_narrow
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  vqadd.s16 q0, q0, r0
  vqmovnb.s16 q0, q0
  .endm
  @ Sixteen taps of two pixels.
  .macro orch_sixteen_taps
  vldrb.8 q0, [r3], #16
  vldrw.32 q2, [r1], #16
  vmladava.s8 r0, q0, q2
  vldrb.8 q1, [r5], #16
  vmladava.s8 r8, q1, q2
  vldrw.32 q3, [r1], #16
  vmladava.s8 r2, q0, q3
  vldrw.32 q2, [r1], #16
  vmladava.s8 r10, q1, q3
  vldrw.32 q3, [r1], #16
  vmladava.s8 r4, q0, q2
  vmladava.s8 r12, q1, q2
  vmladava.s8 r6, q0, q3
  vmladava.s8 lr, q1, q3
  .endm

  @ Four channels of two pixels. `ties`: whether outputs may have them, and there
  @ may be fewer channels.
  .macro orch_tile steps, ties
  ldm r1, {r0, r2, r4, r6}
  ldm r1!, {r8, r10, r12, lr}
  ldrd r3, r5, [sp, #56]
4:
  .rept \steps
  orch_sixteen_taps
  .endr
  cmp r3, r7
  bne 4b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q2, [r1], #16
  vldrw.32 q0, [sp]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q1, q1, q2
  vldrw.32 q3, [r1], #16
  ldr r0, [sp, #64]
  .if \ties
  cmn r0, #128
  beq 6f
  @ Ties of negative numbers go down, for which they are made smaller by one.
  @ Without a shift there are none; outputs below the lowest item saturate.
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q2
  .endif
6:
  vrshl.s32 q0, q0, q3
  vrshl.s32 q1, q1, q3
  orch_narrow
  subs r9, #8
  .if \ties
  bmi 8f
  .endif
  vstrb.16 q0, [r11, q4]
  add r11, #4
  .endm

  @ All of them, two at once.
  .macro orch_all_pixels steps, ties
1:
  add r12, sp, #32
  ldm r12, {r0, r1, r2, r3, r7, r9}
  add r7, r0
  add r4, r0, r3
  subs r2, #2
  bpl 2f
  mov r4, r0
  vmovnt.i32 q4, q4
2:
  add r3, r4
  str r3, [sp, #32]
  str r2, [sp, #40]
  strd r0, r4, [sp, #56]
3:
  orch_tile \steps, \ties
  bne 3b
7:
  ldr r2, [sp, #68]
  ldr r4, [sp, #40]
  add r11, r2
  cmp r4, #0
  bgt 1b
  add sp, #76
  vpop {d8-d9}
  pop {r4-r11, pc}
  .endm

  @ Pixels whose taps are `steps` times 16, or a multiple of that.
  .macro orch_pixels name, steps
  orch_begin \name
  push {r4-r11, lr}
  vpush {d8-d9}
  @ 0: sums; 32: x, tiles, pixels left, step of x, depth, twice the channels;
  @ 56: x of both pixels; 64: offset; 68: from the end of y to the next pixels.
  sub sp, #76
  .if \steps > 1
  ldm r3, {r3, r4, r5, r6, r7, r8, r10}
  .else
  ldm r3, {r3, r4, r5, r6, r7, r8}
  .endif
  add r9, sp, #32
  lsl r7, #1
  stm r9, {r0, r1, r3, r4, r6, r7}
  mov r11, r2
  @ Channels are passed four at a time.
  adds r2, r7, #7
  bic r2, #7
  rsb r2, r2, r5, lsl #2
  asr r2, #1
  strd r8, r2, [sp, #64]
  @ Where the items of q0 go: first and second pixel in turn.
  movs r4, #0
  vidup.u16 q4, r4, #1
  vshr.u16 q4, q4, #1
  lsl r5, r5, #16
  vdup.32 q0, r5
  vadd.i32 q4, q4, q0
  .if \steps > 1
  cmp r10, #0
  beq 9f
  .endif
  orch_all_pixels \steps, 1
8:
  add r9, #8
  vctp.16 r9
  vpst
  vstrbt.16 q0, [r11, q4]
  add r11, #4
  b 7b
  .if \steps > 1
9:
  orch_all_pixels \steps, 0
  .endif
  .size \name, . - \name
  .endm
  orch_pixels orch_packed_pixels, 1
)"
#if ORCH_FAVOUR_SPEED
    R"(
  @ All pixels of four channels, whose weights are in q4 to q7, their scales in q2
  @ and q3.
  .macro orch_stay ties
7:
  ldm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrb.8 q0, [r3]
  add r3, r7
  vmladava.s8 r0, q0, q4
  vldrb.8 q1, [r3]
  add r3, r7
  vmladava.s8 r8, q1, q4
  vmladava.s8 r2, q0, q5
  vmladava.s8 r10, q1, q5
  vmladava.s8 r4, q0, q6
  vmladava.s8 r12, q1, q6
  vmladava.s8 r6, q0, q7
  vmladava.s8 lr, q1, q7
  stm r5, {r0, r2, r4, r6, r8, r10, r12, lr}
  .ifnb \ties
  vldrw.32 q2, [sp, #108]
  .endif
  vldrw.32 q0, [r5]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q1, [r5, #16]
  vqrdmulh.s32 q1, q1, q2
  ldrd r0, r2, [sp, #80]
  .ifnb \ties
  @ As above.
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q2
  .endif
  vrshl.s32 q0, q0, q3
  vrshl.s32 q1, q1, q3
  orch_narrow
  vldrw.32 q1, [sp, #64]
  .ifnb \ties
  vctp.16 r2
  vpst
  vstrbt.16 q0, [r11, q1]
  .else
  vstrb.16 q0, [r11, q1]
  .endif
  add r11, r1
  subs r9, #2
  bpl 7b
  @ An odd last pixel is computed with the one before it, once more.
  cmn r9, #1
  bne 5f
  movs r9, #0
  sub r3, r7
  sub r11, r11, r1, lsr #1
  b 7b
  .endm
  orch_begin orch_packed_pixels_16
  push {r4-r11, lr}
  vpush {d8-d15}
  @ 0: what sums start with, twice; 32: sums; 64: where items go; 80: offset,
  @ twice the channels; 88: x, y; 96: pixels but two; 100: tiles, step of two
  @ outputs; 108: multipliers.
  sub sp, #124
  ldm r3, {r3, r4, r5, r6, r7, r8}
  subs r3, #2
  lsl r7, #1
  strd r8, r7, [sp, #80]
  strd r0, r2, [sp, #88]
  mov r7, r4
  lsl r4, r5, #1
  str r3, [sp, #96]
  strd r1, r4, [sp, #100]
  movs r0, #0
  vidup.u16 q0, r0, #1
  vshr.u16 q0, q0, #1
  lsl r5, r5, #16
  vdup.32 q1, r5
  vadd.i32 q0, q0, q1
  vstrw.32 q0, [sp, #64]
  add r5, sp, #32
1:
  ldr r1, [sp, #100]
  ldm r1!, {r0, r2, r4, r6}
  mov r3, sp
  stm r3!, {r0, r2, r4, r6}
  stm r3!, {r0, r2, r4, r6}
  vldrw.32 q4, [r1], #16
  vldrw.32 q5, [r1], #16
  vldrw.32 q6, [r1], #16
  vldrw.32 q7, [r1], #16
  vldrw.32 q2, [r1], #16
  vldrw.32 q3, [r1], #16
  vstrw.32 q2, [sp, #108]
  str r1, [sp, #100]
  ldrd r3, r11, [sp, #88]
  ldr r9, [sp, #96]
  ldrd r0, r2, [sp, #80]
  ldr r1, [sp, #104]
  @ Fewer than four channels are stored as those with ties are.
  cmp r2, #8
  it hs
  cmnhs r0, #128
  bne 3f
  orch_stay
3:
  orch_stay ties
5:
  ldr r2, [sp, #92]
  adds r2, #4
  ldr r1, [sp, #84]
  str r2, [sp, #92]
  subs r1, #8
  str r1, [sp, #84]
  bgt 1b
  add sp, #124
  vpop {d8-d15}
  pop {r4-r11, pc}
  .size orch_packed_pixels_16, . - orch_packed_pixels_16
  .purgem orch_stay
  orch_pixels orch_packed_pixels_2, 2
  orch_pixels orch_packed_pixels_3, 3
  orch_pixels orch_packed_pixels_4, 4
)"
#endif
    R"(

  orch_begin orch_packed_one_pixel
  push {r4-r11, lr}
  vpush {d8-d11}
  @ 0: sums; 32: x, offset.
  sub sp, #44
  ldrd r7, r9, [r3, #12]
  ldr r3, [r3, #20]
  strd r0, r3, [sp, #32]
  add r5, r1, r7, lsl #2
  add r5, #48
  add r7, r0
  mov r11, r2
  @ Where the items of q0 go: first and second tile in turn.
  adr r2, 4f
  vldrb.u16 q4, [r2]
1:
  @ Without a second tile the first one is computed twice.
  cmp r9, #4
  it le
  movle r5, r1
  ldm r1!, {r0, r2, r4, r6}
  ldm r5!, {r8, r10, r12, lr}
  ldr r3, [sp, #32]
2:
  vldrb.8 q0, [r3], #16
  vldrw.32 q1, [r1], #16
  vldrw.32 q2, [r5], #16
  vmladava.s8 r0, q0, q1
  vldrw.32 q3, [r1], #16
  vmladava.s8 r8, q0, q2
  vldrw.32 q2, [r5], #16
  vmladava.s8 r2, q0, q3
  vldrw.32 q1, [r1], #16
  vmladava.s8 r10, q0, q2
  vldrw.32 q2, [r5], #16
  vmladava.s8 r4, q0, q1
  vldrw.32 q3, [r1], #16
  vmladava.s8 r12, q0, q2
  vldrw.32 q2, [r5], #16
  vmladava.s8 r6, q0, q3
  vmladava.s8 lr, q0, q2
  cmp r3, r7
  bne 2b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q2, [r1], #16
  vldrw.32 q0, [sp]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q3, [r5], #16
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q1, q1, q3
  vldrw.32 q2, [r1], #16
  vldrw.32 q3, [r5], #16
  ldr r0, [sp, #36]
  cmn r0, #128
  beq 3f
  @ Ties as above.
  vshr.s32 q5, q2, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q5
  vshr.s32 q5, q3, #31
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q5
3:
  vrshl.s32 q0, q0, q2
  vrshl.s32 q1, q1, q3
  orch_narrow
  vpt.s16 lt, q4, r9
  vstrbt.16 q0, [r11, q4]
  add r11, #8
  sub r0, r5, r1
  mov r1, r5
  add r5, r0
  subs r9, #8
  bgt 1b
  add sp, #44
  vpop {d8-d11}
  pop {r4-r11, pc}
  .balign 4
4:
  .byte 0, 4, 1, 5, 2, 6, 3, 7
  .size orch_packed_one_pixel, . - orch_packed_one_pixel

  orch_begin orch_packed_pixel
  push {r4-r11, lr}
  sub sp, #44
  ldrd r9, r7, [r3, #56]
  ldr r4, [r3, #68]
  ldrd r6, r8, [r3, #72]
  str r4, [sp, #32]
  strd r6, r8, [sp, #36]
  mov r11, r0
  add r7, r0
  mov r5, r2
1:
  ldm r1!, {r0, r2, r4, r6, r8, r10, r12, lr}
  mov r3, r11
2:
  vldrb.8 q0, [r3], #16
  vldrw.32 q1, [r1]
  vldrw.32 q2, [r1, #16]
  vmladava.s8 r0, q0, q1
  vldrw.32 q3, [r1, #32]
  vmladava.s8 r2, q0, q2
  vldrw.32 q1, [r1, #48]
  vmladava.s8 r4, q0, q3
  vldrw.32 q2, [r1, #64]
  vmladava.s8 r6, q0, q1
  vldrw.32 q3, [r1, #80]
  vmladava.s8 r8, q0, q2
  vldrw.32 q1, [r1, #96]
  vmladava.s8 r10, q0, q3
  vldrw.32 q2, [r1, #112]
  vmladava.s8 r12, q0, q1
  add r1, #128
  vmladava.s8 lr, q0, q2
  cmp r3, r7
  bne 2b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  ldrd r2, r4, [sp, #36]
  vldrw.32 q0, [sp]
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q0, q0, r2
  vqrdmulh.s32 q1, q1, r2
  @ Ties as above.
  asr r2, r4, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, r2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, r2
  vrshl.s32 q0, r4
  vrshl.s32 q1, r4
  ldr r0, [sp, #32]
  orch_narrow
  vctp.16 r9
  vpst
  vstrbt.16 q0, [r5], #8
  subs r9, #8
  bgt 1b
  add sp, #44
  pop {r4-r11, pc}
  .size orch_packed_pixel, . - orch_packed_pixel
  .purgem orch_begin
  .purgem orch_narrow
  .purgem orch_sixteen_taps
  .purgem orch_tile
  .purgem orch_all_pixels
  .purgem orch_pixels
  .text
)");
#endif
