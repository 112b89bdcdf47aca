#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <stddef.h>

#include "orch/kernel.h"
#include "packed.h"
#include "packed_gather.h"

namespace orch::cortex_m {
namespace {

static_assert(offsetof(PackedConvolution, out_channels) == 56 &&
                  offsetof(PackedConvolution, depth) == 60 &&
                  offsetof(PackedConvolution, offset) == 68 &&
                  offsetof(PackedPixel, multiplier) == 72,
              "the assembly knows where things are");

// All output channels of two pixels, four at a time: eight sums, as many as
// there are registers for. r0: inputs of the first pixel; r1: tiles; r2: its
// outputs; r3: `conv`; then inputs of the second pixel, and how far its outputs
// are from those of the first. An odd last pixel is computed twice.
extern "C" void orch_packed_two_pixels(const int8_t* x, const uint8_t* tiles,
                                       int8_t* y, const PackedConvolution* conv,
                                       const int8_t* next_x, int32_t y_step);
// The same of a single pixel, eight channels at a time, all with one scale.
extern "C" void orch_packed_pixel(const int8_t* x, const uint8_t* tiles,
                                  int8_t* y, const PackedPixel* pixel);
asm(R"(
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
  @ From results in q0 and q1 to items in turn, in the 16-bit lanes of q0.
  .macro orch_narrow offset
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  ldr r0, [sp, \offset]
  vqadd.s16 q0, q0, r0
  vqmovnb.s16 q0, q0
  vctp.16 r9
  vpst
  .endm

  orch_begin orch_packed_two_pixels
  push {r4-r11, lr}
  vpush {d8-d9}
  sub sp, #44
  ldrd r5, r6, [sp, #96]
  ldrd r9, r7, [r3, #56]
  ldr r4, [r3, #68]
  strd r0, r5, [sp, #32]
  str r4, [sp, #40]
  add r7, r0
  mov r11, r2
  lsl r9, #1
  @ Where the items of q0 go: first and second pixel in turn.
  movs r4, #0
  vidup.u16 q4, r4, #1
  vshr.u16 q4, q4, #1
  lsl r6, r6, #16
  vdup.32 q0, r6
  vadd.i32 q4, q4, q0
1:
  ldm r1, {r0, r2, r4, r6}
  ldm r1!, {r8, r10, r12, lr}
  ldrd r3, r5, [sp, #32]
2:
  vldrb.8 q0, [r3], #16
  vldrw.32 q2, [r1]
  vmladava.s8 r0, q0, q2
  vldrb.8 q1, [r5], #16
  vmladava.s8 r8, q1, q2
  vldrw.32 q3, [r1, #16]
  vmladava.s8 r2, q0, q3
  vldrw.32 q2, [r1, #32]
  vmladava.s8 r10, q1, q3
  vldrw.32 q3, [r1, #48]
  vmladava.s8 r4, q0, q2
  add r1, #64
  vmladava.s8 r12, q1, q2
  vmladava.s8 r6, q0, q3
  vmladava.s8 lr, q1, q3
  cmp r3, r7
  bne 2b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q2, [r1]
  vldrw.32 q0, [sp]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q1, q1, q2
  vldrw.32 q3, [r1, #16]
  @ Ties of negative numbers go down, for which they are made smaller by one.
  @ Without a shift there are none.
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q2
  vrshl.s32 q0, q0, q3
  vrshl.s32 q1, q1, q3
  orch_narrow #40
  vstrbt.16 q0, [r11, q4]
  add r1, #32
  add r11, #4
  subs r9, #8
  bgt 1b
  add sp, #44
  vpop {d8-d9}
  pop {r4-r11, pc}
  .size orch_packed_two_pixels, . - orch_packed_two_pixels

  orch_begin orch_packed_pixel
  push {r4-r11, lr}
  sub sp, #44
  ldrd r9, r7, [r3, #56]
  ldr r4, [r3, #68]
  ldrd r6, r8, [r3, #72]
  str r4, [sp, #32]
  strd r6, r8, [sp, #36]
  mov r11, r0
  add r7, r0
  mov r5, r2
1:
  ldm r1!, {r0, r2, r4, r6, r8, r10, r12, lr}
  mov r3, r11
2:
  vldrb.8 q0, [r3], #16
  vldrw.32 q1, [r1]
  vldrw.32 q2, [r1, #16]
  vmladava.s8 r0, q0, q1
  vldrw.32 q3, [r1, #32]
  vmladava.s8 r2, q0, q2
  vldrw.32 q1, [r1, #48]
  vmladava.s8 r4, q0, q3
  vldrw.32 q2, [r1, #64]
  vmladava.s8 r6, q0, q1
  vldrw.32 q3, [r1, #80]
  vmladava.s8 r8, q0, q2
  vldrw.32 q1, [r1, #96]
  vmladava.s8 r10, q0, q3
  vldrw.32 q2, [r1, #112]
  vmladava.s8 r12, q0, q1
  add r1, #128
  vmladava.s8 lr, q0, q2
  cmp r3, r7
  bne 2b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  ldrd r2, r4, [sp, #36]
  vldrw.32 q0, [sp]
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q0, q0, r2
  vqrdmulh.s32 q1, q1, r2
  @ Ties as above.
  asr r2, r4, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, r2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, r2
  vrshl.s32 q0, r4
  vrshl.s32 q1, r4
  orch_narrow #32
  vstrbt.16 q0, [r5], #8
  subs r9, #8
  bgt 1b
  add sp, #44
  pop {r4-r11, pc}
  .size orch_packed_pixel, . - orch_packed_pixel
  .purgem orch_begin
  .purgem orch_narrow
  .text
)");

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor packed, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// `packed` is a PackedConvolution and tiles of four channels; `scratch` has
// room for the inputs of two pixels if they do not lie side by side. The build
// has checked everything.
ORCH_HOT void packed_two_pixels(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* image = static_cast<const int8_t*>(call.input);
  const uint8_t* packed = static_cast<const uint8_t*>(call.packed);
  int8_t* const patches = static_cast<int8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedConvolution& conv =
      *reinterpret_cast<const PackedConvolution*>(packed);
  packed += sizeof conv;
  const bool joined = conv.depth == conv.in_channels &&
                      conv.rows.padding + conv.columns.padding == 0;
  const int32_t channels = conv.in_channels;
  const int32_t line = conv.columns.in * channels;
  const int8_t* first =
      nullptr;  // inputs of a pixel that waits for the next one
  int8_t* patch = patches;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      const int8_t* x = image + rows.in * line;
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const int8_t* inputs = x;
        x += conv.columns.stride * channels;
        if (!joined) {
          gather(conv, image, rows, taps_at(conv.columns, v), patch);
          inputs = patch;
          patch = patch == patches ? patches + conv.depth : patches;
        }
        if (first == nullptr) {
          first = inputs;
          continue;
        }
        orch_packed_two_pixels(first, packed, y, &conv, inputs,
                               conv.out_channels);
        y += 2 * conv.out_channels;
        first = nullptr;
      }
    }
    image += conv.rows.in * line;
  }
  if (first != nullptr) {
    orch_packed_two_pixels(first, packed, y, &conv, first, 0);
  }
}

Error packed_two_pixels_out(const Args& args) {
  return run_packed(packed_two_pixels, args);
}

// The same of a single pixel, as in a matrix product of one row: `packed` is a
// PackedPixel and tiles of eight channels.
ORCH_HOT void packed_pixel(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  const uint8_t* packed = static_cast<const uint8_t*>(call.packed);
  int8_t* const patch = static_cast<int8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedPixel& pixel = *reinterpret_cast<const PackedPixel*>(packed);
  packed += sizeof pixel;
  const int32_t channels = pixel.conv.in_channels;
  if (pixel.conv.depth != channels) {
    copy_rows(x, 0, channels, 1, patch, 0);
    x = patch;
  }
  orch_packed_pixel(x, packed, y, &pixel);
}

Error packed_pixel_out(const Args& args) {
  return run_packed(packed_pixel, args);
}

}  // namespace orch::cortex_m

#endif
