// The assembly of packed_loops_dsp.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "assembly.h"
#include "packed_dsp.h"
#include "packed_loops_dsp.h"

namespace orch::cortex_m {

static_assert(offsetof(PairLoop, y) == 12 &&
                  offsetof(PackedMatrix, b_ties) ==
                      offsetof(PackedMatrix, tile_bytes) + 32,
              "the assembly knows where things are");

}  // namespace orch::cortex_m

// Loops have several steps in a round, more of them where speed counts. The
// first round begins where as many steps are left as it has to do, for which
// macros know the bytes of a step.
#if !ORCH_FAVOUR_SPEED
#define ORCH_STEPS(small, fast) small
#else
#define ORCH_STEPS(small, fast) fast
#endif

asm(R"(
  @ What ends all outputs of a tile.
  .macro orch_scale sums, multiplier, added
  .irp sum, \sums
  smmla \sum, \sum, \multiplier, \added
  .endr
  .endm
  @ A number is less than what was added to its product if it was negative.
  .macro orch_ties_down sums, added, ties
  .irp sum, \sums
  cmp \sum, \added
  it lt
  sublt \sum, \sum, \ties
  .endr
  .endm
  .macro orch_each sums, instruction, operands:vararg
  .irp sum, \sums
  \instruction \sum, \operands
  .endr
  .endm
  .macro orch_to_items sums, shift
  .irp sum, \sums
  ssat \sum, #8, \sum \shift
  .endr
  .endm
  @ Pairs of channels, for two or three pixels. A step takes four taps, 8 bytes
  @ of weights.
  @ Products of a pair of taps; x2 is that of a third pixel.
  .macro orch_pair_of_taps w, x0, x1, x2, s0=r7, s1=r8, a0=r10, a1=r11
  smlad r7, \x0, \w, \s0
  smlad r8, \x1, \w, \s1
  .ifnb \x2
  smlad r9, \x2, \w, r9
  .endif
  sxtb16 \w, \w
  smlad r10, \x0, \w, \a0
  smlad r11, \x1, \w, \a1
  .ifnb \x2
  smlad r12, \x2, \w, r12
  .endif
  .endm
  @ 48 bytes for two pixels, 64 for three.
  .macro orch_four_taps pixels, starts:vararg
  .if \pixels == 2
  ldrd r6, r9, [r1], #8
  ldm.w r0!, {r2, r3, r4, r5}
  orch_pair_of_taps r6, r2, r3
  orch_pair_of_taps r9, r4, r5
  .else
  ldrd r5, r6, [r1], #8
  ldm r0!, {r2, r3, r4}
  orch_pair_of_taps r5, r2, r3, r4, \starts
  ldm r0!, {r2, r3, r4}
  orch_pair_of_taps r6, r2, r3, r4
  .endif
  .endm
  .macro orch_store_pixels y0, y1, y2
  lsrs r4, #8
  .ifnb \y2
  strb \y2, [lr, r4]
  .endif
  strb \y1, [r5, r4]
  strb \y0, [r0, r4]
  .endm
  @ The sums in `b`, less those of A in `a`, are those of B; `y` are registers
  @ of places of outputs, and of ties. With `peels`, sums begin with the first
  @ step.
  .macro orch_pixels pixels, b, a, y, steps, peels=0
  @ 0: x, bytes of weights; 8: two of y, ties, the last y of three; then entry,
  @ end of weights.
  sub sp, #8*\pixels+12
  .cfi_adjust_cfa_offset 8*\pixels+12
  ldm r2, {r4, r5, r6, r7, r8, r9}
  add r5, r1
  strd r0, r4, [sp]
  strd r7, r8, [sp, #8]
  strd r6, r9, [sp, #16]
  rsbs r4, #8 * \peels
  and r4, #8 * (\steps - 1)
  .if \pixels == 2
  add r4, r4, r4, lsl #1
  .endif
  adr r2, 2f
  add r2, r2, r4, lsl #2*\pixels-3
  adds r2, #1
  strd r2, r5, [sp, #4*\pixels+12]
1:
  .if \pixels == 2
  ldrd r8, r11, [r1], #8
  .else
  ldrd r9, r12, [r1], #8
  .endif
  ldrd r0, lr, [sp]
  add lr, r1
  .if \peels
  orch_four_taps \pixels, r9, r9, r12, r12
  cmp r1, lr
  it ne
  ldrne pc, [sp, #4*\pixels+12]
  b 3f
  .else
  .if \pixels == 3
  mov r8, r9
  mov r11, r12
  .endif
  mov r7, r8
  mov r10, r11
  ldr pc, [sp, #4*\pixels+12]
  .endif
  .balign 4
2:
  .rept \steps
  orch_four_taps \pixels
  .endr
  cmp r1, lr
  bne 2b
3:
  add r0, sp, #8
  ldm r0, {\y}
  ldm r1!, {r2, r3, r4}
  sub r7, r10
  sub r8, r11
  .if \pixels == 3
  sub r9, r12
  .endif
  orch_each "\a", lsl, r4
  orch_scale "\a", r2, r3
  cbz r6, 4f
  lsl r2, r6, r4
  orch_ties_down "\a", r3, "r2, lsr #1"
4:
  orch_to_items "\a", ", asr #13"
  orch_store_pixels \a
  ldm r1!, {r2, r3, r4}
  orch_scale "\b", r2, r3
  cbz r6, 5f
  orch_ties_down "\b", r3, #128
5:
  orch_each "\b", asr, r4
  orch_to_items "\b"
  orch_store_pixels \b
  ldr r2, [sp, #4*\pixels+16]
  cmp r1, r2
  bne 1b
  add sp, #8*\pixels+12
  .endm
  .macro orch_three_pixels steps, peels=0
  orch_pixels 3, "r7, r8, r9", "r10, r11, r12", "r0, r5, r6, lr", \steps, \peels
  .endm
  .macro orch_two_pixels steps
  orch_pixels 2, "r7, r8", "r10, r11", "r0, r5, r6", \steps
  .endm
  @ Tiles of four channels, for one pixel. A step takes eight taps, 32 bytes of
  @ weights.
  .macro orch_tile_taps x0, x1
  ldm r1!, {r6, r7, r8, r9}
  smlad r10, \x0, r6, r10
  smlad r10, \x1, r7, r10
  sxtab16 r6, \x1, r6
  sxtab16 r7, \x0, r7
  smlad r11, r6, r7, r11
  smlad r12, \x0, r8, r12
  smlad r12, \x1, r9, r12
  sxtab16 r8, \x1, r8
  sxtab16 r9, \x0, r9
  smlad lr, r8, r9, lr
  .endm
  .macro orch_widen_taps word
  sxtb16 r3, \word, ror #8
  sxtb16 r2, \word
  orch_tile_taps r2, r3
  .endm
  @ 90 bytes, or 108 if it widens.
  .macro orch_eight_taps widens
  .if \widens
  ldrd r2, r4, [r0], #8
  orch_widen_taps r2
  orch_widen_taps r4
  .else
  ldm.n r0!, {r2, r3, r4, r5}
  orch_tile_taps r2, r3
  orch_tile_taps r4, r5
  .endif
  .endm
  .macro orch_store sum, place
  uxtb r3, r2, ror #\place
  strb \sum, [r0, r3]
  .endm
  .macro orch_tiles steps, widens
  @ 0: y, x; 8: sum, or end of the tile's weights; 12: bytes of a tile, end of
  @ weights; 20: scale, entry. The sum is behind the registers that are saved.
  sub sp, #28
  .cfi_adjust_cfa_offset 28
  .if \widens
  ldr r6, [sp, #64]
  str r6, [sp, #8]
  .endif
  ldm r3!, {r4, r5}
  add r5, r1
  strd r2, r0, [sp]
  strd r4, r5, [sp, #12]
  .if \steps == 1
  str r3, [sp, #20]
  .else
  rsbs r0, r4, #0
  and r0, #32 * (\steps - 1)
  add r0, r0, r0, lsl #1
  .if \widens
  add r0, r0, r0, lsr #3
  .else
  sub r0, r0, r0, lsr #4
  .endif
  adr r2, 2f
  add r0, r2
  adds r0, #1
  strd r3, r0, [sp, #20]
  .endif
1:
  ldm r1!, {r10, r11, r12, lr}
  ldr r5, [sp, #12]
  add r5, r1
  .if \widens
  ldrd r0, r3, [sp, #4]
  .else
  ldr r0, [sp, #4]
  str r5, [sp, #8]
  ldr r3, [r0], #4
  .endif
  sub r11, r3
  sub lr, r3
  .if \steps > 1
  ldr pc, [sp, #24]
  .balign 4
  .endif
2:
  .rept \steps
  orch_eight_taps \widens
  .endr
  .if \widens == 0
  ldr r5, [sp, #8]
  .endif
  cmp r1, r5
  bne 2b
  ldr r0, [sp, #20]
  ldm r0, {r2-r8}
  sub r10, r11
  sub r12, lr
  orch_each "r11, lr", lsl, r4
  orch_scale "r11, lr", r2, r3
  orch_scale "r10, r12", r2, r5
  cbz r7, 4f
  orch_ties_down "r11, lr", r3, r7
  orch_ties_down "r10, r12", r5, r8
4:
  ldr r0, [sp]
  ldr r2, [r1], #4
  orch_each "r10, r12", asr, r6
  orch_to_items "r11, lr", ", asr #13"
  orch_to_items "r10, r12"
  orch_store r11, 0
  orch_store r10, 8
  orch_store lr, 16
  orch_store r12, 24
  adds r0, #4
  str r0, [sp]
  ldr r2, [sp, #16]
  cmp r1, r2
  bne 1b
  add sp, #28
  .endm
)"
    // clang-format off
    ORCH_WHOLE("orch_packed_pixels",
               "orch_three_pixels " ORCH_STEPS("2", "16, 1"))
#if !ORCH_FAVOUR_SPEED
    ORCH_WHOLE("orch_packed_band_pixels", "orch_three_pixels 4")
#endif
    ORCH_WHOLE("orch_packed_two_pixels",
               "orch_two_pixels " ORCH_STEPS("4", "16"))
    ORCH_WHOLE("orch_packed_tiles", "orch_tiles " ORCH_STEPS("1", "2") ", 0")
    ORCH_WHOLE("orch_packed_tiles_few", "orch_tiles 4, 1")
    // clang-format on
    R"(
  .purgem orch_scale
  .purgem orch_ties_down
  .purgem orch_each
  .purgem orch_to_items
  .purgem orch_pair_of_taps
  .purgem orch_four_taps
  .purgem orch_store_pixels
  .purgem orch_pixels
  .purgem orch_three_pixels
  .purgem orch_two_pixels
  .purgem orch_tile_taps
  .purgem orch_widen_taps
  .purgem orch_eight_taps
  .purgem orch_store
  .purgem orch_tiles
)");

// Inputs become pairs.
asm(ORCH_WHOLE("orch_widen_pixels", R"(
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
  bne 1b)") ORCH_FUNCTION("orch_widen_two_pixels") ORCH_SAVE_FEW R"(
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
)" ORCH_RETURN_FEW ORCH_END("orch_widen_two_pixels")
#if ORCH_FAVOUR_SPEED
        ORCH_FUNCTION("orch_move_pairs") ORCH_SAVE_FEW R"(
1:
  ldm r0!, {r3-r7, r12}
  stm r1!, {r3-r7, r12}
  cmp r0, r2
  bne 1b
)" ORCH_RETURN_FEW ORCH_END("orch_move_pairs")
#endif
);

#endif
