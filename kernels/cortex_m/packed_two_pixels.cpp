// The assembly of packed_two_pixels.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

// A step takes four taps and is of 48 bytes. The loop begins where as many are
// left as its first round has to do.
#ifdef __OPTIMIZE_SIZE__
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

#endif
