// The assembly of tile_dsp.h. Compilers do not find that the registers suffice.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "assembly.h"
#include "tile_dsp.h"

namespace orch::cortex_m {

static_assert(offsetof(PairTiles, w_tile) == 12 &&
                  offsetof(PairTiles, tiles) == 16 &&
                  kMostSums / 2 * sizeof(int32_t) == 64,
              "the assembly knows where things are");
static_assert(offsetof(TapList, count) == 320 &&
                  offsetof(TapList, x_offset) == 324 && sizeof(Tap) == 8,
              "the assembly knows where things are");

}  // namespace orch::cortex_m

asm(R"(
  @ Sums begin in r4 to r7, w in r1, its end in r12; r9 and r10 are steps.
  .macro orch_multiply_one
  ldrd r2, r3, [r0], #8
  ldr r8, [r1, r9]
  sxtb16 r11, r8
  smlad r5, r2, r11, r5
  sxtb16 r8, r8, ror #8
  smlad r5, r3, r8, r5
  ldr r8, [r1, r9, lsl #1]
  sxtb16 r11, r8
  smlad r6, r2, r11, r6
  sxtb16 r8, r8, ror #8
  smlad r6, r3, r8, r6
  ldr r8, [r1, r10]
  sxtb16 r11, r8
  smlad r7, r2, r11, r7
  sxtb16 r8, r8, ror #8
  smlad r7, r3, r8, r7
  ldr r8, [r1], #4
  sxtb16 r11, r8
  smlad r4, r2, r11, r4
  sxtb16 r8, r8, ror #8
  smlad r4, r3, r8, r4
  .endm
  .macro orch_multiply_two
  ldrd r2, r3, [r0], #8
  ldr r8, [r1]
  sxtb16 r8, r8
  smlad r4, r2, r8, r4
  smlad r6, r3, r8, r6
  ldr r8, [r1, r10]
  sxtb16 r8, r8
  smlad r5, r2, r8, r5
  smlad r7, r3, r8, r7
  ldrd r2, r3, [r0], #8
  ldr r8, [r1, r10]
  sxtb16 r8, r8, ror #8
  smlad r5, r2, r8, r5
  smlad r7, r3, r8, r7
  ldr r8, [r1], #4
  sxtb16 r8, r8, ror #8
  smlad r4, r2, r8, r4
  smlad r6, r3, r8, r6
  .endm
  .macro orch_sum_pairs pixels
  ldr lr, [r2, #16]
  push {r0, r2, r3}
  .cfi_adjust_cfa_offset 12
1:
  ldm sp, {r0, r2, r3}
  ldm r2, {r8, r9, r10}
  add r12, r1, r8
  .if \pixels == 1
  ldm r3, {r4-r7}
  .else
  ldrd r4, r5, [r3]
  ldrd r6, r7, [r3, #64]
  .endif
2:
  .if \pixels == 1
  orch_multiply_one
  .else
  orch_multiply_two
  .endif
  cmp r1, r12
  bne 2b
  ldrd r2, r3, [sp, #4]
  .if \pixels == 1
  stm r3!, {r4-r7}
  .else
  strd r6, r7, [r3, #64]
  strd r4, r5, [r3], #8
  .endif
  str r3, [sp, #8]
  ldr r2, [r2, #12]
  add r1, r2
  subs lr, #1
  bne 1b
  add sp, #12
  .endm
)" ORCH_WHOLE("orch_sum_pairs_1", "orch_sum_pairs 1")
        ORCH_WHOLE("orch_sum_pairs_2", "orch_sum_pairs 2") R"(
  .purgem orch_multiply_one
  .purgem orch_multiply_two
  .purgem orch_sum_pairs
)");

#if ORCH_UNALIGNED
// The number of tiles is behind the registers that are saved.
asm(ORCH_FUNCTION("orch_sum_taps") ORCH_SAVE R"(
  push {r0}
  .cfi_adjust_cfa_offset 4
  ldrd r12, lr, [r0, #320]
  add r12, r0, r12, lsl #3
  pkhbt lr, lr, lr, lsl #16
1:
  ldm r3, {r4-r7}
  ldr r0, [sp]
2:
  ldrd r8, r9, [r0], #8
  ldr r8, [r1, r8]
  ldr r9, [r2, r9]
  sxtab16 r10, lr, r8
  sxtb16 r11, r9
  smlabb r4, r10, r11, r4
  smlatt r6, r10, r11, r6
  sxtab16 r10, lr, r8, ror #8
  sxtb16 r11, r9, ror #8
  smlabb r5, r10, r11, r5
  smlatt r7, r10, r11, r7
  cmp r0, r12
  bne 2b
  stm r3!, {r4-r7}
  adds r1, #4
  adds r2, #4
  ldr r0, [sp, #40]
  subs r0, #1
  str r0, [sp, #40]
  bne 1b
  add sp, #4
)" ORCH_RETURN ORCH_END("orch_sum_taps"));
#endif

#endif
