// What packed_matrix does, without scratch memory.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

// All output channels of a pixel. r0: `x`, whole words; r1: `w`, tiles of
// weights; r2: `y`; r3: `loop`, which begins at `tile_bytes`; on the stack:
// the sum of products of two inputs. Inputs become pairs in each tile anew.
//
// A step takes eight taps of 32 bytes of weights, and is of 108 bytes. The loop
// begins where as many are left as its first round has to do.
extern "C" void orch_packed_tiles_few(const int8_t* x, const uint8_t* w,
                                      int8_t* y, const int32_t* loop,
                                      int32_t sum);
asm(R"(
  .section .text.orch_packed_tiles_few, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_tiles_few
  .hidden orch_packed_tiles_few
  .type orch_packed_tiles_few, %function
  .thumb_func
  .macro orch_four_taps word
  sxtb16 r3, \word, ror #8
  sxtb16 r2, \word
  ldm r1!, {r6, r7, r8, r9}
  smlad r10, r2, r6, r10
  smlad r10, r3, r7, r10
  sxtab16 r6, r3, r6
  sxtab16 r7, r2, r7
  smlad r11, r6, r7, r11
  smlad r12, r2, r8, r12
  smlad r12, r3, r9, r12
  sxtab16 r8, r3, r8
  sxtab16 r9, r2, r9
  smlad lr, r8, r9, lr
  .endm
  @ A number is less than what was added to its product if it was negative.
  .macro orch_ties_down sum, added, ties
  cmp \sum, \added
  it lt
  sublt \sum, \ties
  .endm
  .macro orch_store sum, place
  uxtb r3, r2, ror #\place
  strb \sum, [r0, r3]
  .endm
orch_packed_tiles_few:
  push {r4-r11, lr}
  @ 0: x, sum; 8: bytes of a tile, entry; 16: y, end of weights; 24: scale.
  sub sp, #28
  ldr r6, [sp, #64]
  ldm r3!, {r4, r5}
  add r5, r1
  strd r0, r6, [sp]
  strd r2, r5, [sp, #16]
  str r3, [sp, #24]
  rsbs r0, r4, #0
  and r0, #96
  add r0, r0, r0, lsl #1
  add r0, r0, r0, lsr #3
  adr.w r2, 2f
  add r0, r2
  adds r0, #1
  strd r4, r0, [sp, #8]
1:
  ldm r1!, {r10, r11, r12, lr}
  ldrd r0, r3, [sp]
  ldr r5, [sp, #8]
  add r5, r1
  sub r11, r3
  sub lr, r3
  ldr pc, [sp, #12]
  .balign 4
2:
  .rept 4
  ldrd r2, r4, [r0], #8
  orch_four_taps r2
  orch_four_taps r4
  .endr
  cmp r1, r5
  bne 2b

  ldr r0, [sp, #24]
  ldm r0, {r2-r8}
  sub r10, r11
  sub r12, lr
  lsl r11, r4
  lsl lr, r4
  smmla r11, r11, r2, r3
  smmla lr, lr, r2, r3
  smmla r10, r10, r2, r5
  smmla r12, r12, r2, r5
  cbz r7, 4f
  orch_ties_down r11, r3, r7
  orch_ties_down lr, r3, r7
  orch_ties_down r10, r5, r8
  orch_ties_down r12, r5, r8
4:
  ldr r0, [sp, #16]
  ldr r2, [r1], #4
  asr r10, r6
  asr r12, r6
  ssat r11, #8, r11, asr #13
  orch_store r11, 0
  ssat r10, #8, r10
  orch_store r10, 8
  ssat lr, #8, lr, asr #13
  orch_store lr, 16
  ssat r12, #8, r12
  orch_store r12, 24
  adds r0, #4
  str r0, [sp, #16]
  ldr r2, [sp, #20]
  cmp r1, r2
  bne 1b
  add sp, #28
  pop {r4-r11, pc}
  .size orch_packed_tiles_few, . - orch_packed_tiles_few
  .purgem orch_four_taps
  .purgem orch_store
  .purgem orch_ties_down
  .text
)");

/// The sum of products of neighbours.
ORCH_HOT int32_t sum_of_products(const int8_t* x, int32_t items) {
  int32_t sum = 0;
  for (const int8_t* const end = x + items; x != end; x += 4) {
    const uint32_t word = load4(x);
    sum = __builtin_arm_smlad(even(word), odd(word), sum);
  }
  return sum;
}

}  // namespace

// Prepared: what packed_matrix does, where memory is scarce. Inputs are whole
// words, and whole steps of the loop: nothing lies beyond them.
void packed_matrix_few(const PreparedCall& prepared) {
  const PackedCall& packed = static_cast<const PackedCall&>(prepared);
  const PackedMatrix& call = *static_cast<const PackedMatrix*>(packed.header);
  const int8_t* x = static_cast<const int8_t*>(packed.input);
  const uint8_t* tiles = static_cast<const uint8_t*>(packed.weights);
  int8_t* y = static_cast<int8_t*>(packed.out);
  for (int32_t pixel = 0; pixel < call.pixels; ++pixel) {
    orch_packed_tiles_few(x, tiles, y, &call.tile_bytes,
                          sum_of_products(x, call.items));
    x += call.items;
    y += call.out_channels;
  }
}

// The same with limits.
void limited_packed_matrix_few(const PreparedCall& call) {
  run_limited<PackedMatrix>(packed_matrix_few, call);
}

}  // namespace orch::cortex_m

#endif
