// The assembly of packed_one_pixel.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

asm(R"(
  .section .text.orch_packed_one_pixel, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_one_pixel
  .hidden orch_packed_one_pixel
  .type orch_packed_one_pixel, %function
  .thumb_func
orch_packed_one_pixel:
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
  @ Ties as in orch_packed_pixels.
  vshr.s32 q5, q2, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q5
  vshr.s32 q5, q3, #31
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q5
3:
  vrshl.s32 q0, q0, q2
  vrshl.s32 q1, q1, q3
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  vqadd.s16 q0, q0, r0
  vqmovnb.s16 q0, q0
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
  .text
)");

#endif
