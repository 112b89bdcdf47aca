#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed.h"
#include "packed_gather.h"
#include "tile_dsp.h"

namespace orch::cortex_m {
namespace {

// All output channels of a pixel. r0: `x`: the sum of products of two inputs,
// then inputs as pairs; r1: `w`, tiles of weights; r2: `y`; r3: `loop`. All
// registers are in use: compilers do not find that they suffice.
using TilesFn = void(const int32_t* x, const uint8_t* w, int8_t* y,
                     const TileLoop* loop);
extern "C" TilesFn orch_packed_tiles;
/// The same with one scale for all channels. A tile ends with the places of its
/// four outputs, a byte each.
extern "C" TilesFn orch_packed_even_tiles;
asm(ORCH_SCALE_MACRO R"(
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
  @ Leaves sums of two pairs, 256 * B and A, in r10, r11, r12, lr, the output in
  @ r8, and its offset in r9.
  .macro orch_tile_sums
  push {r4-r11, lr}
  sub sp, #36
  ldm r3, {r4, r5, r6, r7, r8}
  add r5, r1
  strd r0, r2, [sp]
  strd r4, r5, [sp, #8]
  str r6, [sp, #16]
  strd r7, r8, [sp, #24]
1:
  ldm r1!, {r10, r11, r12, lr}
  ldr r0, [sp]
  ldr r2, [sp, #8]
  ldr r3, [r0], #4
  add r2, r1
  str r2, [sp, #20]
  sub r11, r3
  sub lr, r3
2:
  ldm r0!, {r2, r3, r4, r5}
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
  ldm r1!, {r6, r7, r8, r9}
  ldr r2, [sp, #20]
  smlad r10, r4, r6, r10
  smlad r10, r5, r7, r10
  sxtab16 r6, r5, r6
  sxtab16 r7, r4, r7
  smlad r11, r6, r7, r11
  smlad r12, r4, r8, r12
  smlad r12, r5, r9, r12
  sxtab16 r8, r5, r8
  sxtab16 r9, r4, r9
  smlad lr, r8, r9, lr
  cmp r1, r2
  bne 2b

  ldr r8, [sp, #4]
  ldr r9, [sp, #16]
  sub r10, r11
  sub r12, lr
  .endm
  .macro orch_end name
  ldr r2, [sp, #12]
  cmp r1, r2
  bne 1b
  add sp, #36
  pop {r4-r11, pc}
  .size \name, . - \name
  .endm
  .macro orch_scale_even sum, place
  smmulr \sum, \sum, r2
  adds \sum, \sum, \sum, asr #31
  asrs \sum, r3
  adc \sum, r9
  ssat \sum, #8, \sum
  uxtb r5, r4, ror #\place
  strb \sum, [r8, r5]
  .endm

  orch_begin orch_packed_tiles
  orch_tile_sums
  ldm r1!, {r2-r5}
  lsl r11, #1
  asr r10, #7
  orch_scale r11, r2, r3
  orch_scale r10, r4, r5
  ldm r1!, {r2-r5}
  lsl lr, #1
  asr r12, #7
  orch_scale lr, r2, r3
  orch_scale r12, r4, r5
  orch_end orch_packed_tiles

  orch_begin orch_packed_even_tiles
  orch_tile_sums
  ldr r4, [r1], #4
  ldr r2, [sp, #24]
  ldr r3, [sp, #28]
  lsl r11, #1
  asr r10, #7
  lsl lr, #1
  asr r12, #7
  orch_scale_even r11, 0
  orch_scale_even r10, 8
  orch_scale_even lr, 16
  orch_scale_even r12, 24
  add r8, #4
  str r8, [sp, #4]
  orch_end orch_packed_even_tiles
  .purgem orch_scale
  .purgem orch_scale_even
  .purgem orch_tile_sums
  .purgem orch_begin
  .purgem orch_end
  .text
)");

/// Pairs of the inputs of a pixel, and first the sum of products of neighbours.
ORCH_HOT void widen_pixel(const int8_t* x, int32_t depth, int32_t* to) {
  int32_t sum = 0;
  int32_t* pairs = to + 1;
  for (const int8_t* const end = x + depth; x != end; x += 4) {
    const uint32_t word = load4(x);
    const Pair first = even(word);
    const Pair second = odd(word);
    sum = __builtin_arm_smlad(first, second, sum);
    pairs[0] = first;
    pairs[1] = second;
    pairs += 2;
  }
  *to = sum;
}

/// One of the two: what a pointer calls has no known stack.
template <TilesFn* kCompute>
ORCH_HOT void run(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* image = static_cast<const int8_t*>(call.input);
  const uint8_t* packed = static_cast<const uint8_t*>(call.packed);
  uint8_t* scratch = static_cast<uint8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedConvolution& conv =
      *reinterpret_cast<const PackedConvolution*>(packed);
  packed += sizeof conv;
  const TileLoop& loop = *reinterpret_cast<const TileLoop*>(packed);
  packed += sizeof loop;
  int32_t* const pairs = reinterpret_cast<int32_t*>(scratch);
  int8_t* const patch = reinterpret_cast<int8_t*>(pairs + 1 + conv.depth / 2);
  const int32_t line = conv.columns.in * conv.in_channels;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        const int8_t* x =
            image + rows.in * line + columns.in * conv.in_channels;
        if (rows.count != 1 || columns.count != 1 ||
            conv.depth != conv.in_channels) {
          gather(conv, image, rows, columns, patch);
          x = patch;
        }
        widen_pixel(x, conv.depth, pairs);
        kCompute(pairs, packed, y, &loop);
        y += conv.out_channels;
      }
    }
    image += conv.rows.in * line;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor packed, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// `packed` is a PackedConvolution, a TileLoop and tiles; `scratch` holds the
// pairs of a pixel, then its inputs if they do not lie side by side. The build
// has checked everything.
void packed_conv2d(const PreparedCall& call) { run<orch_packed_tiles>(call); }

Error packed_conv2d_out(const Args& args) {
  return run_packed(packed_conv2d, args);
}

// The same where all channels have one scale.
void packed_even_conv2d(const PreparedCall& call) {
  run<orch_packed_even_tiles>(call);
}

Error packed_even_conv2d_out(const Args& args) {
  return run_packed(packed_even_conv2d, args);
}

}  // namespace orch::cortex_m

#endif
