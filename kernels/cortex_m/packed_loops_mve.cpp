// The assembly of packed_loops_mve.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include "loop_macros_mve.h"
#include "packed_loops_mve.h"

#define ORCH_UNROLLED_LOOP(vectors) \
  "  orch_pixels orch_packed_pixels_" #vectors ", " #vectors "\n"

asm(ORCH_LOOP_MACROS R"(
  @ Four channels of two pixels. `ties`: whether outputs may have them, and
  @ there may be fewer channels.
  .macro orch_tile steps, ties
  ldm r1, {r0, r2, r4, r6}
  ldm r1!, {r8, r10, r12, lr}
  ldrd r3, r5, [sp, #56]
4:
  .rept \steps
  vldrb.8 q0, [r3], #16
  orch_load w.32, q2, "[r1], #16", r0, q0, q2
  orch_load b.8, q1, "[r5], #16", r8, q1, q2
  orch_load w.32, q3, "[r1], #16", r2, q0, q3
  orch_load w.32, q2, "[r1], #16", r10, q1, q3
  orch_load w.32, q3, "[r1], #16", r4, q0, q2, r12, q1, q2
  orch_sum r6, q0, q3, lr, q1, q3
  .endr
  cmp r3, r7
  bne 4b

  orch_multiply "[r1], #16"
  vldrw.32 q3, [r1], #16
  ldr r0, [sp, #64]
  .if \ties
  cmn r0, #128
  beq 6f
  orch_ties q2, q3
  .endif
6:
  orch_shift r0, q3, q3
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
  orch_return 76, d8-d9
  .endm

  @ Where the items of q0 go: first and second pixel in turn, `step` apart.
  @ `zero` becomes 16.
  .macro orch_places places, zero, step, spare
  movs \zero, #0
  vidup.u16 \places, \zero, #1
  vshr.u16 \places, \places, #1
  lsl \step, \step, #16
  vdup.32 \spare, \step
  vadd.i32 \places, \places, \spare
  .endm

  @ Pixels whose taps are `steps` times 16, or a multiple of that.
  .macro orch_pixels name, steps
  @ 0: sums; 32: x, tiles, pixels left, step of x, depth, twice the channels;
  @ 56: x of both pixels; 64: offset; 68: from the end of y to the next pixels.
  orch_begin \name, 76, d8-d9, 16
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
  orch_places q4, r4, r5, q0
  .if \steps > 1
  cmp r10, #0
  beq 9f
  .endif
  orch_all_pixels \steps, 1
8:
  add r9, #8
  orch_store "[r11, q4]", r9
  add r11, #4
  b 7b
  .if \steps > 1
9:
  orch_all_pixels \steps, 0
  .endif
  orch_end \name
  .endm

  @ All pixels of four channels, whose weights are in q4 to q7, shifts in q3, and
  @ multipliers in q2 or, if q2 is needed for ties, in memory.
  .macro orch_stay_pixels multipliers
7:
  ldm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrb.8 q0, [r3]
  add r3, r7
  orch_sum r0, q0, q4
  vldrb.8 q1, [r3]
  add r3, r7
  orch_sum r8, q1, q4, r2, q0, q5, r10, q1, q5
  orch_sum r4, q0, q6, r12, q1, q6, r6, q0, q7, lr, q1, q7
  orch_multiply "\multipliers", , r5
  ldrd r0, r2, [sp, #80]
  .ifnb \multipliers
  orch_ties q2, q3
  .endif
  orch_shift r0, q3, q3
  vldrw.32 q1, [sp, #64]
  .ifnb \multipliers
  orch_store "[r11, q1]", r2
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
  .macro orch_stay name
  @ 0: what sums start with, twice; 32: sums; 64: where items go; 80: offset,
  @ twice the channels; 88: x, y; 96: pixels but two; 100: tiles, step of two
  @ outputs; 108: multipliers.
  orch_begin \name, 124, d8-d15, 64
  ldm r3, {r3, r4, r5, r6, r7, r8}
  subs r3, #2
  lsl r7, #1
  strd r8, r7, [sp, #80]
  strd r0, r2, [sp, #88]
  mov r7, r4
  lsl r4, r5, #1
  str r3, [sp, #96]
  strd r1, r4, [sp, #100]
  orch_places q0, r0, r5, q1
  vstrw.32 q0, [sp, #64]
  add r5, sp, #32
1:
  ldr r1, [sp, #100]
  ldm r1!, {r0, r2, r4, r6}
  mov r3, sp
  stm r3!, {r0, r2, r4, r6}
  stm r3!, {r0, r2, r4, r6}
  .irp vector, q4, q5, q6, q7, q2, q3
  vldrw.32 \vector, [r1], #16
  .endr
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
  orch_stay_pixels
3:
  orch_stay_pixels "[sp, #108]"
5:
  ldr r2, [sp, #92]
  adds r2, #4
  ldr r1, [sp, #84]
  str r2, [sp, #92]
  subs r1, #8
  str r1, [sp, #84]
  bgt 1b
  orch_return 124, d8-d15
  orch_end \name
  .endm

  @ Sixteen taps of a pixel, of eight channels whose weights are read from `a`
  @ and `b` in turn.
  .macro orch_eight_channels a, b, s0, s1, s2, s3, s4, s5, s6, s7
  vldrb.8 q0, [r3], #16
  vldrw.32 q1, \a
  orch_load w.32, q2, "\b", \s0, q0, q1
  orch_load w.32, q3, "\a", \s1, q0, q2
  orch_load w.32, q1, "\b", \s2, q0, q3
  orch_load w.32, q2, "\a", \s3, q0, q1
  orch_load w.32, q3, "\b", \s4, q0, q2
  orch_load w.32, q1, "\a", \s5, q0, q3
  orch_load w.32, q2, "\b", \s6, q0, q1
  orch_sum \s7, q0, q2
  .endm

  @ 0: sums; 32: x, offset.
  orch_begin orch_packed_one_pixel, 44, d8-d11, 32
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
  orch_eight_channels "[r1], #16", "[r5], #16", r0, r8, r2, r10, r4, r12, r6, lr
  cmp r3, r7
  bne 2b
  orch_multiply "[r1], #16", "[r5], #16"
  vldrw.32 q2, [r1], #16
  vldrw.32 q3, [r5], #16
  ldr r0, [sp, #36]
  cmn r0, #128
  beq 3f
  orch_ties q5, q2, q3
3:
  orch_shift r0, q2, q3
  vpt.s16 lt, q4, r9
  vstrbt.16 q0, [r11, q4]
  add r11, #8
  sub r0, r5, r1
  mov r1, r5
  add r5, r0
  subs r9, #8
  bgt 1b
  orch_return 44, d8-d11
  .balign 4
4:
  .byte 0, 4, 1, 5, 2, 6, 3, 7
  orch_end orch_packed_one_pixel

  @ A pixel whose channels have one scale. Loads channels and depth; 32:
  @ multiplier, shift, offset.
  .macro orch_alike channels, depth
  ldrd \channels, \depth, [r3, #56]
  ldr r8, [r3, #68]
  ldrd r4, r6, [r3, #72]
  str r8, [sp, #40]
  strd r4, r6, [sp, #32]
  .endm
  .macro orch_scale_alike first, second
  ldrd r2, r4, [sp, #32]
  vqrdmulh.s32 q0, \first, r2
  vqrdmulh.s32 q1, \second, r2
  asr r2, r4, #31
  orch_ties r2
  vrshl.s32 q0, r4
  vrshl.s32 q1, r4
  ldr r0, [sp, #40]
  orch_narrow r0
  .endm

  @ 0: sums.
  orch_begin orch_packed_pixel, 44
  orch_alike r9, r7
  mov r11, r0
  add r7, r0
  mov r5, r2
1:
  ldm r1!, {r0, r2, r4, r6, r8, r10, r12, lr}
  mov r3, r11
2:
  orch_eight_channels "[r1], #16", "[r1], #16", r0, r2, r4, r6, r8, r10, r12, lr
  cmp r3, r7
  bne 2b
  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q0, [sp]
  vldrw.32 q1, [sp, #16]
  orch_scale_alike q0, q1
  orch_store "[r5], #8", r9
  subs r9, #8
  bgt 1b
  orch_return 44
  orch_end orch_packed_pixel

  @ Weights are 16 times as large until their sums are complete.
  .macro orch_two_channels first, second
  vldrw.32 q1, [r1], #16
  vshl.i8 q2, q1, #4
  vand q1, q1, q7
  orch_sum \first, q0, q2, \second, q0, q1
  .endm
  @ 0: sums; 44: y, channels left; 52: x, its end, group.
  orch_begin orch_int4_pixel, 64, d10-d15, 48
  orch_alike r9, r5
  ldr r7, [sp, #148]
  strd r2, r9, [sp, #44]
  add r5, r0
  strd r0, r5, [sp, #52]
  str r7, [sp, #60]
  movs r3, #0xf0
  vdup.8 q7, r3
1:
  vldrw.32 q5, [r1], #16
  vldrw.32 q6, [r1], #16
  ldr r3, [sp, #52]
2:
  ldrd r7, r5, [sp, #56]
  add r5, r3
  cmp r5, r7
  it hi
  movhi r5, r7
  mov r11, r1
  adds r1, #8
  movs r0, #0
  .irp sum, r2, r4, r6, r8, r10, r12, lr
  mov \sum, r0
  .endr
3:
  vldrb.8 q0, [r3], #16
  orch_two_channels r0, r2
  orch_two_channels r4, r6
  orch_two_channels r8, r10
  orch_two_channels r12, lr
  cmp r3, r5
  bne 3b
  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q0, [sp]
  vldrw.32 q1, [sp, #16]
  mov r0, r11
  vldrb.u32 q2, [r0]
  vldrb.u32 q3, [r0, #4]
  vshr.s32 q0, q0, #4
  vshr.s32 q1, q1, #4
  vmul.i32 q0, q0, q2
  vmul.i32 q1, q1, q3
  vadd.i32 q5, q5, q0
  vadd.i32 q6, q6, q1
  cmp r3, r7
  bne 2b
  orch_scale_alike q5, q6
  ldrd r2, r4, [sp, #44]
  orch_store "[r2], #8", r4
  subs r4, #8
  strd r2, r4, [sp, #44]
  bgt 1b
  orch_return 64, d10-d15
  orch_end orch_int4_pixel

  @ A vector of each of six lines, and of each of three of the weights of two
  @ channels: sums of four pixels.
  .macro orch_six_lines
  .irp weights, q0, q1, q2, q3, q4, q5
  vldrb.8 \weights, [r1], #16
  .endr
  orch_load b.8, q6, "[r3], #16", r0, q6, q0, r8, q6, q3
  orch_load b.8, q6, "[r3], #16", r2, q6, q0, r10, q6, q3
  orch_sum r0, q6, q1, r8, q6, q4
  orch_load b.8, q6, "[r3], #16", r4, q6, q0, r12, q6, q3
  orch_sum r2, q6, q1, r10, q6, q4, r0, q6, q2, r8, q6, q5
  orch_load b.8, q6, "[r3], #16", r6, q6, q0, lr, q6, q3
  orch_sum r4, q6, q1, r12, q6, q4, r2, q6, q2, r10, q6, q5
  orch_load b.8, q6, "[r3], #16", r6, q6, q1, lr, q6, q4
  orch_sum r4, q6, q2, r12, q6, q5
  orch_load b.8, q6, "[r3], #16", r6, q6, q2, lr, q6, q5
  add r3, r5
  .endm
  @ Ties as above. All sums are shifted.
  .macro orch_multiply_ties
  vshr.s32 q2, q0, #31
  vqrdmlah.s32 q2, q0, r2
  vshr.s32 q3, q1, #31
  vqrdmlah.s32 q3, q1, r8
  .endm

  @ `ties`: whether outputs have them; 2 if only the call knows.
  .macro orch_lines name, fast, ties
  @ 0: sums; 32: zeros, but for x at 40 and blocks at 56;
  @ 72: tiles, pixels left, channels, offset;
  @ 88: from four pixels to the next ones; 92: y.
  orch_begin \name, 100, d8-d15, 64
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
  orch_narrow r12, q2, q3
  .else
  vqrdmulh.s32 q0, q0, r2
  vqrdmulh.s32 q1, q1, r8
4:
  vrshl.s32 q0, r4
  vrshl.s32 q1, r10
  orch_narrow r12
  .endif
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
  orch_return 100, d8-d15
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
  orch_end \name
  .endm

  orch_pixels orch_packed_pixels, 1
  orch_lines orch_packed_lines, 0, 2
)" ORCH_UNROLLED(ORCH_UNROLLED_LOOP)
#if ORCH_FAVOUR_SPEED
        R"(
  orch_stay orch_packed_pixels_16
  orch_lines orch_packed_lines_3, 1, 0
  orch_lines orch_packed_lines_3_ties, 1, 1
)"
#endif
        R"(
  .purgem orch_tile; .purgem orch_all_pixels; .purgem orch_places
  .purgem orch_pixels; .purgem orch_stay_pixels; .purgem orch_stay
  .purgem orch_eight_channels; .purgem orch_alike; .purgem orch_scale_alike
  .purgem orch_two_channels; .purgem orch_six_lines; .purgem orch_multiply_ties
  .purgem orch_lines
)" ORCH_LOOP_MACROS_END);

#endif
