#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

// Where speed counts, the loop has two steps of eight taps. Its first round
// begins with the second one if their number is odd.
#if !ORCH_FAVOUR_SPEED
#define ORCH_FIND_ENTRY ""
#define ORCH_GO_TO_ENTRY ""
#define ORCH_ENTRY ""
#else
#define ORCH_FIND_ENTRY \
  "  adr.w r5, 2f\n"    \
  "  adr.w r6, 3f\n"    \
  "  tst r4, #32\n"     \
  "  it ne\n"           \
  "  movne r5, r6\n"    \
  "  add r5, #1\n"      \
  "  str r5, [sp, #24]\n"
#define ORCH_GO_TO_ENTRY "  ldr pc, [sp, #24]\n"
#define ORCH_ENTRY    \
  "  orch_eight_taps" \
  "\n"                \
  "3:\n"
#endif

// All output channels of a pixel. r0: `x`: the sum of products of two inputs,
// then inputs as pairs; r1: `w`, tiles of weights; r2: `y`; r3: `loop`, which
// begins at `tile_bytes`. All registers are in use: compilers do not find that
// they suffice.
extern "C" void orch_packed_tiles(const int32_t* x, const uint8_t* w, int8_t* y,
                                  const int32_t* loop);
asm(R"(
  .section .text.orch_packed_tiles, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_tiles
  .hidden orch_packed_tiles
  .type orch_packed_tiles, %function
  .thumb_func
  .macro orch_four_taps x0, x1
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
  .macro orch_eight_taps
  ldm r0!, {r2, r3, r4, r5}
  orch_four_taps r2, r3
  orch_four_taps r4, r5
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
orch_packed_tiles:
  push {r4-r11, lr}
  sub sp, #28
  ldm r3!, {r4, r5}
  add r5, r1
  strd r0, r2, [sp]
  strd r4, r5, [sp, #8]
  str r3, [sp, #20]
)" ORCH_FIND_ENTRY R"(
1:
  ldm r1!, {r10, r11, r12, lr}
  ldr r0, [sp]
  ldr r2, [sp, #8]
  ldr r3, [r0], #4
  add r2, r1
  str r2, [sp, #16]
  sub r11, r3
  sub lr, r3
)" ORCH_GO_TO_ENTRY R"(
2:
)" ORCH_ENTRY R"(
  orch_eight_taps
  ldr r2, [sp, #16]
  cmp r1, r2
  bne 2b

  ldr r0, [sp, #20]
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
  ldr r0, [sp, #4]
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
  str r0, [sp, #4]
  ldr r2, [sp, #12]
  cmp r1, r2
  bne 1b
  add sp, #28
  pop {r4-r11, pc}
  .size orch_packed_tiles, . - orch_packed_tiles
  .purgem orch_four_taps
  .purgem orch_eight_taps
  .purgem orch_store
  .purgem orch_ties_down
  .text
)");

/// Pairs of the inputs of a pixel, and first the sum of products of neighbours.
/// Inputs beyond the last one have no weights: they may be anything.
ORCH_HOT void widen_pixel(const int8_t* x, int32_t items, int32_t depth,
                          int32_t* to) {
  int32_t sum = 0;
  int32_t* pairs = to + 1;
  for (int32_t* const end = pairs + depth / 2; pairs != end; pairs += 2) {
    uint32_t word = 0;
    if (items >= 4) {
      word = load4(x);
    } else {
      for (int32_t i = items; i > 0;) {
        word = word << 8 | static_cast<uint8_t>(x[--i]);
      }
    }
    x += 4;
    items -= 4;
    const Pair first = even(word);
    const Pair second = odd(word);
    sum = __builtin_arm_smlad(first, second, sum);
    pairs[0] = first;
    pairs[1] = second;
  }
  *to = sum;
}

void run(const PackedCall& prepared) {
  const int8_t* x = static_cast<const int8_t*>(prepared.input);
  const uint8_t* tiles = static_cast<const uint8_t*>(prepared.weights);
  uint8_t* scratch = static_cast<uint8_t*>(prepared.scratch);
  int8_t* y = static_cast<int8_t*>(prepared.out);
  const PackedMatrix& call = *static_cast<const PackedMatrix*>(prepared.header);
  int32_t* const pairs = reinterpret_cast<int32_t*>(scratch);
  for (int32_t pixel = 0; pixel < call.pixels; ++pixel) {
    widen_pixel(x, call.items, call.depth, pairs);
    orch_packed_tiles(pairs, tiles, y, &call.tile_bytes);
    x += call.items;
    y += call.out_channels;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_linear.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedMatrix; `scratch` holds the pairs of a pixel. The build
// has checked everything.
void packed_matrix(const PreparedCall& call) {
  run(static_cast<const PackedCall&>(call));
}

Error packed_matrix_out(const Args& args) {
  return run_packed(packed_matrix, args);
}

// The same with limits: `int low, int high` in front of `out`.
void limited_packed_matrix(const PreparedCall& call) {
  run_limited<PackedMatrix>(packed_matrix, call);
}

Error limited_packed_matrix_out(const Args& args) {
  return run_limited<PackedMatrix>(packed_matrix, args);
}

}  // namespace orch::cortex_m

#endif
