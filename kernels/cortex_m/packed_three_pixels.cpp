// The assembly of packed_three_pixels.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

// Sums start with the first step where speed counts, else before it. Then the
// first round of the loop begins where as many steps are left as it has to do.
#if !ORCH_FAVOUR_SPEED
#define ORCH_STEPS "2"
#define ORCH_STEPS_BEFORE "0"
#define ORCH_START   \
  "  mov r7, r9\n"   \
  "  mov r8, r9\n"   \
  "  mov r10, r12\n" \
  "  mov r11, r12\n" \
  "  ldr pc, [sp, #24]\n"
#else
#define ORCH_STEPS "16"
#define ORCH_STEPS_BEFORE "1"
#define ORCH_START                    \
  "  ldrd r5, r6, [r1], #8\n"         \
  "  orch_pair_of_taps r5, r9, r12\n" \
  "  orch_pair_of_taps r6\n"          \
  "  cmp r1, lr\n"                    \
  "  it ne\n"                         \
  "  ldrne pc, [sp, #24]\n"           \
  "  b 5f\n"
#endif

// A step takes four taps and is of 64 bytes.
asm(R"(
  .syntax unified
  .macro orch_products sum0, sum1, sum2, w, start
  .ifb \start
  smlad \sum0, r2, \w, \sum0
  smlad \sum1, r3, \w, \sum1
  smlad \sum2, r4, \w, \sum2
  .else
  smlad \sum0, r2, \w, \start
  smlad \sum1, r3, \w, \start
  smlad \sum2, r4, \w, \start
  .endif
  .endm
  .macro orch_pair_of_taps w, start, start_a
  ldm r0!, {r2, r3, r4}
  orch_products r7, r8, r9, \w, \start
  sxtb16 \w, \w
  orch_products r10, r11, r12, \w, \start_a
  .endm
  @ A number is less than what was added to its product if it was negative.
  .macro orch_ties_down sum, ties
  cmp \sum, r3
  it lt
  sublt \sum, \sum, \ties
  .endm
  .macro orch_store_three first, second, third
  lsr r2, r4, #8
  strb \third, [lr, r2]
  strb \second, [r5, r2]
  strb \first, [r0, r2]
  .endm
  .macro orch_pixels name, steps
  .section .text.\name, "ax", %progbits
  .thumb
  .balign 4
  .globl \name
  .hidden \name
  .type \name, %function
  .thumb_func
\name:
  push {r4-r11, lr}
  @ 0: x, bytes of weights; 8: two of y, ties, the last of y; 24: entry, end of
  @ weights.
  sub sp, #36
  ldm r2, {r4, r5, r6, r7, r8, r9}
  add r5, r1
  strd r0, r4, [sp]
  strd r7, r8, [sp, #8]
  strd r6, r9, [sp, #16]
  rsb r4, #8 * )" ORCH_STEPS_BEFORE R"(
  lsl r4, #3
  and r4, #64 * (\steps - 1)
  adr.w r6, 2f
  add r4, r6
  add r4, #1
  strd r4, r5, [sp, #24]
1:
  ldrd r9, r12, [r1], #8
  ldrd r0, lr, [sp]
  add lr, r1
)" ORCH_START R"(
  .balign 4
2:
  .rept \steps
  ldrd r5, r6, [r1], #8
  orch_pair_of_taps r5
  orch_pair_of_taps r6
  .endr
  cmp r1, lr
  bne 2b
5:
  add r0, sp, #8
  ldm r0, {r0, r5, r6, lr}
  ldm r1!, {r2, r3, r4}
  sub r7, r10
  sub r8, r11
  sub r9, r12
  lsl r10, r4
  lsl r11, r4
  lsl r12, r4
  smmla r10, r10, r2, r3
  smmla r11, r11, r2, r3
  smmla r12, r12, r2, r3
  cbz r6, 3f
  lsl r2, r6, r4
  orch_ties_down r10, "r2, lsr #1"
  orch_ties_down r11, "r2, lsr #1"
  orch_ties_down r12, "r2, lsr #1"
3:
  ssat r10, #8, r10, asr #13
  ssat r11, #8, r11, asr #13
  ssat r12, #8, r12, asr #13
  orch_store_three r10, r11, r12
  ldm r1!, {r2, r3, r4}
  smmla r7, r7, r2, r3
  smmla r8, r8, r2, r3
  smmla r9, r9, r2, r3
  cbz r6, 4f
  orch_ties_down r7, #128
  orch_ties_down r8, #128
  orch_ties_down r9, #128
4:
  asr r7, r4
  asr r8, r4
  asr r9, r4
  ssat r7, #8, r7
  ssat r8, #8, r8
  ssat r9, #8, r9
  orch_store_three r7, r8, r9
  ldr r2, [sp, #28]
  cmp r1, r2
  bne 1b
  add sp, #36
  pop {r4-r11, pc}
  .size \name, . - \name
  .endm
  orch_pixels orch_packed_pixels, )" ORCH_STEPS
    "\n"
#if !ORCH_FAVOUR_SPEED
    "  orch_pixels orch_packed_band_pixels, 4\n"
#endif
    R"(
  .purgem orch_pixels
  .purgem orch_products
  .purgem orch_pair_of_taps
  .purgem orch_ties_down
  .purgem orch_store_three
  .text
)");

asm(R"(
  .section .text.orch_widen_pixels, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_widen_pixels
  .hidden orch_widen_pixels
  .type orch_widen_pixels, %function
  .thumb_func
orch_widen_pixels:
  push {r4-r11, lr}
  ldm r0, {r10, r11, r12}
  ldr lr, [sp, #36]
  sub r3, r1
1:
  add r0, r10, r1
  subs r0, #4
2:
  ldr r4, [r10], #4
  ldr r5, [r11], #4
  ldr r6, [r12], #4
  sxtb16 r7, r4, ror #8
  sxtb16 r8, r5, ror #8
  sxtb16 r9, r6, ror #8
  sxtb16 r4, r4
  sxtb16 r5, r5
  sxtb16 r6, r6
  stm lr!, {r4-r9}
  cmp r10, r0
  bls 2b
  sub r4, r10, r0
  cmp r4, #4
  beq 3f
  sub r10, r4
  sub r11, r4
  sub r12, r4
  b 2b
3:
  add r10, r3
  add r11, r3
  add r12, r3
  subs r2, #1
  bne 1b
  pop {r4-r11, pc}
  .size orch_widen_pixels, . - orch_widen_pixels
  .text
)");

#endif
