// The assembly of packed_windows_dsp.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "assembly.h"
#include "packed_windows_dsp.h"

namespace orch::cortex_m {

static_assert(sizeof(PackedChannel) == 20 && offsetof(RowsCall<3>, w) == 44 &&
                  offsetof(RowsCall<3>, line) == 80 &&
                  offsetof(RowsCall<4>, w) == 56,
              "the assembly knows where things are");

}  // namespace orch::cortex_m

// Where speed counts, two columns of outputs at a time.
#if !ORCH_FAVOUR_SPEED
#define ORCH_PAIRS ""
#else
#define ORCH_PAIRS ", 1"
#endif

asm(R"(
  @ Items of sums, whose multiplier is in \m and what is added in \add.
  .macro orch_to_items m, add, sums:vararg
  .irp sum, \sums
  smmla \sum, \sum, \m, \add
  .endr
  .irp sum, \sums
  ssat \sum, #8, \sum, asr #11
  .endr
  .endm
  @ Four channels of two rows, x above y, as pairs: of channels a, b, c and d.
  .macro orch_pair x, y, a, b, c, d
  pkhbt \c, \x, \y, lsl #16
  pkhtb \d, \y, \x, asr #16
  sxtb16 \a, \c
  sxtb16 \b, \c, ror #8
  sxtb16 \c, \d
  sxtb16 \d, \d, ror #8
  .endm
  @ Pairs at r1, of rows at r0 and r4, to which r3 and r5 are added.
  .macro orch_pair_two
  ldr r6, [r0]
  ldr r7, [r4]
  add r0, r3
  add r4, r5
  orch_pair r6, r7, r6, r7, lr, r12
  str r6, [r1], #32
  str r7, [r1, #-24]
  str lr, [r1, #-16]
  str r12, [r1, #-8]
  .endm

  @ Adds products of a column: of two rows with the first two weights, of the
  @ last one with the third weight; for the lower output, if there is one, one
  @ row further down.
  .macro orch_column w01, w12, start0, start1, sum0, sum1
  smlad \sum0, r3, \w01, \start0
  .ifnb \sum1
  smlatb \sum1, r3, \w01, \start1
  .endif
  smlabt \sum0, r4, \w12, \sum0
  .ifnb \sum1
  smlad \sum1, r4, \w12, \sum1
  .endif
  .endm
  @ The outputs of two rows.
  .macro orch_store_two upper, lower
  strb \lower, [r2, r3]
  strb \upper, [r2]
  add r2, r4
  .endm
  @ Pairs of a column are loaded into x0 and x1, the upper one into r3. If
  @ windows move by one, two rows of outputs: `lower` is the sum of the lower
  @ one. With `pairs`, they are two columns at a time, which share two of their
  @ columns of inputs. An odd last one is left.
  .macro orch_rows x0, x1, stride, lower, pairs=0
  @ 0: multiplier, what is added; 8: line, channels; 16: x, y; 24: bytes of
  @ columns, end of x; 32: w; 36: end of pairs of columns, start, and the bytes
  @ of an odd column of outputs.
  sub sp, #52
  .cfi_adjust_cfa_offset 52
  ldm r3, {r4, r5, r6, r7}
  .if \pairs
  and r8, r4, #32
  bic r4, r4, #32
  str r8, [sp, #44]
  .endif
  strd r5, r6, [sp, #8]
  strd r0, r2, [sp, #16]
  strd r4, r7, [sp, #24]
1:
  @ Weights of a channel are in r5, r6, r9 to r12, and the start in lr.
  ldm r1!, {r3, r4, r5, r6, r9, r10, r11, r12, lr}
  strd r3, r4, [sp]
  str r1, [sp, #32]
  ldrd r0, r2, [sp, #16]
  ldr r1, [sp, #24]
  add r1, r0
  .if \pairs
  strd r1, lr, [sp, #36]
  cmp r0, r1
  beq 5f
4:
  ldr r1, [sp, #40]
  ldrd \x0, \x1, [r0], #64
  orch_column r5, r6, r1, r1, r7, r8
  ldrd \x0, \x1, [r0, #-32]
  orch_column r9, r10, r7, r8, r7, r8
  orch_column r5, r6, r1, r1, lr, r1
  ldrd \x0, \x1, [r0]
  orch_column r11, r12, r7, r8, r7, r8
  orch_column r9, r10, lr, r1, lr, r1
  ldrd \x0, \x1, [r0, #32]
  orch_column r11, r12, lr, r1, lr, r1
  ldrd r3, r4, [sp]
  orch_to_items r3, r4, r7, r8, lr, r1
  ldrd r3, r4, [sp, #8]
  orch_store_two r7, r8
  orch_store_two lr, r1
  ldr r3, [sp, #36]
  cmp r0, r3
  bne 4b
5:
  ldr r1, [sp, #44]
  cbz r1, 3f
  ldr lr, [sp, #40]
  add r1, r0
  .endif
  .if \stride == 2
  ldr r8, [sp, #12]
  .endif
2:
  ldrd \x0, \x1, [r0], #32*\stride
  orch_column r5, r6, lr, lr, r7, \lower
  ldrd \x0, \x1, [r0, #32-32*\stride]
  orch_column r9, r10, r7, r8, r7, \lower
  ldrd \x0, \x1, [r0, #64-32*\stride]
  orch_column r11, r12, r7, r8, r7, \lower
  ldrd r3, r4, [sp]
  .if \stride == 1
  orch_to_items r3, r4, r7, r8
  ldrd r3, r4, [sp, #8]
  orch_store_two r7, r8
  .else
  orch_to_items r3, r4, r7
  strb r7, [r2]
  add r2, r8
  .endif
  cmp r0, r1
  bne 2b
3:
  ldrd r0, r2, [sp, #16]
  adds r0, #8
  adds r2, #1
  strd r0, r2, [sp, #16]
  ldrd r3, r1, [sp, #28]
  cmp r0, r3
  bne 1b
  add sp, #52
  .endm

  @ Pairs of three rows, from r1 on, or if some of them are padding, from r1 to
  @ r3 on: a pair of the two upper rows, and the lower one.
  .macro orch_pair_three
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
  orch_pair r7, r9, r0, r6, r8, r12
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
  .endm
  @ Pairs of four rows, the upper ones and the lower ones.
  .macro orch_pair_four
  ldr r9, [sp, #8]
  subs r9, #56
  ldrd r10, r11, [r9, #48]
  ldr r2, [r9, #92]
  cbz r2, 2f
  ldr r1, [r9]
  ldr r4, [r9, #16]
  adds r3, r1, #4
  str r3, [r9]
  add r3, r2, r2, lsl #1
7:
  ldr r0, [r1]
  ldr r6, [r1, r2]
  ldr r5, [r1, r2, lsl #1]
  ldr r7, [r1, r3]
  add r1, r4
  orch_pair r0, r6, r0, r6, r8, r12
  orch_pair r5, r7, r5, r7, r9, lr
  stm r10!, {r0, r5-r9, r12, lr}
  cmp r10, r11
  bne 7b
  b 3f
2:
  @ One pair after the other.
  ldrd r0, r4, [r9]
  ldrd r3, r5, [r9, #16]
  ldrd r6, r7, [r9, #32]
  add r6, r0
  add r7, r4
  strd r6, r7, [r9], #8
  mov r1, r10
8:
  orch_pair_two
  cmp r1, r11
  bne 8b
  add r10, #4
  add r11, #4
  ldr r0, [sp, #8]
  subs r0, #40
  cmp r0, r9
  bne 2b
  .endm
  @ Adds the products of a column: t and m are weights of the upper rows, b is
  @ one half of a register.
  .macro orch_add_column sum, tm, half, b, start
  smlad \sum, r0, \tm, \start
  smlab\half \sum, lr, \b, \sum
  .endm
  @ Four products of a column: r0 is the upper pair, lr the lower one.
  .macro orch_add_both upper, lower, start0=r5, start1=r6
  smlad r5, r0, \upper, \start0
  smlatb r6, r0, \upper, \start1
  smlabb r5, lr, \lower, r5
  smladx r6, lr, \lower, r6
  .endm
  @ Outputs of a row, two at a time.
  .macro orch_one_row stride
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
  orch_to_items r0, lr, r5, r11
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
  orch_to_items r0, lr, r5
  strb r5, [r1]
6:
  .endm
  @ Outputs of two rows. Weights are r11: 20 and 10; r12: 21 and 11; r8: 22 and
  @ 12, too.
  .macro orch_both_rows
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
  orch_to_items r0, lr, r5, r6
  ldrd r0, lr, [sp, #12]
  strb r6, [r1, lr]
  strb r5, [r1]
  add r1, r0
  subs r3, #1 << 8
  bhs 4b
  .endm
  @ A band that sees this many rows.
  .macro orch_band rows, stride
  @ 0: multiplier, what is added; 8: `w` of the call; of four rows, 12:
  @ channels, `below`.
  adds r0, #12*\rows+8
  sub sp, #8*\rows-12
  .cfi_adjust_cfa_offset 8*\rows-12
  .if \rows == 4
  ldrd r1, r2, [r0, #20]
  strd r1, r2, [sp, #12]
  .endif
  str r0, [sp, #8]
1:
  .if \rows == 4
  orch_pair_four
  .else
  orch_pair_three
  .endif
3:
  ldr lr, [sp, #8]
  .if \rows == 4
  ldm lr, {r0, r1, r2, r3, r9}
  .else
  ldm lr, {r0, r1, r2, r3, r9, r12}
  .endif
  ldm r0!, {r4-r8}
  add r10, r1, #1
  add r11, r2, #32 / 4
  stm lr, {r0, r10, r11}
  sxtah r9, r9, r6
  strd r5, r9, [sp]
  @ Outputs that are left, of two rows but one, and bits to shift.
  uxtab r3, r3, r6, ror #16
  .if \rows == 4
  sub r3, #1 << 8
  .endif
  asr r4, r3
  @ Weights, by row and column: r7: 00 and 10; r9: 01 and 11; r10: 02 and 12;
  @ r8: 20 and 21; r6: 22.
  sxtb16 r9, r7, ror #8
  sxtb16 r7, r7
  sxtb16 r10, r8
  sxtb16 r8, r8, ror #8
  .if \rows == 4
  orch_both_rows
  .else
  asr r6, #24
  orch_one_row \stride
  .endif
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
  add sp, #8*\rows-12
  .endm
)"
    // clang-format off
    ORCH_FUNCTION("orch_pair_rows") ORCH_SAVE_FEW R"(
  ldm r0, {r0, r3, r4, r5}
1:
  orch_pair_two
  cmp r1, r2
  bne 1b
)" ORCH_RETURN_FEW ORCH_END("orch_pair_rows")
    ORCH_WHOLE("orch_packed_two_rows", "orch_rows r3, r4, 1, r8" ORCH_PAIRS)
    ORCH_WHOLE("orch_packed_two_rows_swapped",
               "orch_rows r4, r3, 1, r8" ORCH_PAIRS)
    ORCH_WHOLE("orch_packed_row", "orch_rows r3, r4, 2")
    ORCH_WHOLE("orch_packed_row_swapped", "orch_rows r4, r3, 2")
    ORCH_WHOLE("orch_packed_one_row", "orch_band 3, 1")
    ORCH_WHOLE("orch_packed_one_row_by_two", "orch_band 3, 2")
    ORCH_WHOLE("orch_packed_both_rows", "orch_band 4, 1")
    // clang-format on
    R"(
  .purgem orch_to_items
  .purgem orch_pair
  .purgem orch_pair_two
  .purgem orch_column
  .purgem orch_store_two
  .purgem orch_rows
  .purgem orch_pair_three
  .purgem orch_pair_four
  .purgem orch_add_column
  .purgem orch_add_both
  .purgem orch_one_row
  .purgem orch_both_rows
  .purgem orch_band
)");

#endif
