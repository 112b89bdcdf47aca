#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <stddef.h>

#include "orch/kernel.h"
#include "packed.h"
#include "packed_limits.h"
#include "packed_one_pixel.h"
#include "packed_strip.h"

namespace orch::cortex_m {
namespace {

static_assert(offsetof(PackedPixel, conv.out_channels) == 56 &&
                  offsetof(PackedPixel, conv.depth) == 60 &&
                  offsetof(PackedPixel, conv.offset) == 68 &&
                  offsetof(PackedPixel, multiplier) == 72,
              "the assembly knows where things are");

// All output channels of some pixels. Two pixels and four channels at a time:
// eight sums, as many as there are registers for. An odd last pixel is computed
// twice.
extern "C" {
using Loop = void(const int8_t* x, const uint8_t* tiles, int8_t* y,
                  const Run* run);
Loop orch_packed_pixels;
#ifndef __OPTIMIZE_SIZE__
// The same for at least two pixels of 16 taps: weights stay in registers.
Loop orch_packed_pixels_16;
// For depths of a multiple of so many vectors.
Loop orch_packed_pixels_2;
Loop orch_packed_pixels_3;
Loop orch_packed_pixels_4;
#endif
}
// All output channels of a single pixel, eight at a time, all with one scale.
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
  .macro orch_narrow
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  vqadd.s16 q0, q0, r0
  vqmovnb.s16 q0, q0
  .endm
  @ Sixteen taps of two pixels.
  .macro orch_sixteen_taps
  vldrb.8 q0, [r3], #16
  vldrw.32 q2, [r1], #16
  vmladava.s8 r0, q0, q2
  vldrb.8 q1, [r5], #16
  vmladava.s8 r8, q1, q2
  vldrw.32 q3, [r1], #16
  vmladava.s8 r2, q0, q3
  vldrw.32 q2, [r1], #16
  vmladava.s8 r10, q1, q3
  vldrw.32 q3, [r1], #16
  vmladava.s8 r4, q0, q2
  vmladava.s8 r12, q1, q2
  vmladava.s8 r6, q0, q3
  vmladava.s8 lr, q1, q3
  .endm

  @ Pixels whose taps are `steps` times 16, or a multiple of that.
  .macro orch_pixels name, steps
  orch_begin \name
  push {r4-r11, lr}
  vpush {d8-d9}
  @ 0: sums; 32: x, tiles, pixels left, step of x, depth, twice the channels;
  @ 56: x of both pixels; 64: offset; 68: from the end of y to the next pixels.
  sub sp, #76
  ldm r3, {r3, r4, r5, r6, r7, r8}
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
  @ Where the items of q0 go: first and second pixel in turn.
  movs r4, #0
  vidup.u16 q4, r4, #1
  vshr.u16 q4, q4, #1
  lsl r5, r5, #16
  vdup.32 q0, r5
  vadd.i32 q4, q4, q0
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
  ldm r1, {r0, r2, r4, r6}
  ldm r1!, {r8, r10, r12, lr}
  ldrd r3, r5, [sp, #56]
4:
  .rept \steps
  orch_sixteen_taps
  .endr
  cmp r3, r7
  bne 4b

  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q2, [r1], #16
  vldrw.32 q0, [sp]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q1, q1, q2
  vldrw.32 q3, [r1], #16
  ldr r0, [sp, #64]
  cmn r0, #128
  beq 6f
  @ Ties of negative numbers go down, for which they are made smaller by one.
  @ Without a shift there are none; outputs below the lowest item saturate.
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q2
6:
  vrshl.s32 q0, q0, q3
  vrshl.s32 q1, q1, q3
  orch_narrow
  subs r9, #8
  bmi 8f
  vstrb.16 q0, [r11, q4]
  add r11, #4
  bne 3b
7:
  ldr r2, [sp, #68]
  ldr r4, [sp, #40]
  add r11, r2
  cmp r4, #0
  bgt 1b
  add sp, #76
  vpop {d8-d9}
  pop {r4-r11, pc}
8:
  add r9, #8
  vctp.16 r9
  vpst
  vstrbt.16 q0, [r11, q4]
  add r11, #4
  b 7b
  .size \name, . - \name
  .endm
  orch_pixels orch_packed_pixels, 1
)"
#ifndef __OPTIMIZE_SIZE__
    R"(
  @ All pixels of four channels, whose weights are in q4 to q7, their scales in q2
  @ and q3.
  .macro orch_stay ties
7:
  ldm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrb.8 q0, [r3]
  add r3, r7
  vmladava.s8 r0, q0, q4
  vldrb.8 q1, [r3]
  add r3, r7
  vmladava.s8 r8, q1, q4
  vmladava.s8 r2, q0, q5
  vmladava.s8 r10, q1, q5
  vmladava.s8 r4, q0, q6
  vmladava.s8 r12, q1, q6
  vmladava.s8 r6, q0, q7
  vmladava.s8 lr, q1, q7
  stm r5, {r0, r2, r4, r6, r8, r10, r12, lr}
  .ifnb \ties
  vldrw.32 q2, [sp, #108]
  .endif
  vldrw.32 q0, [r5]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q1, [r5, #16]
  vqrdmulh.s32 q1, q1, q2
  ldrd r0, r2, [sp, #80]
  .ifnb \ties
  @ As above.
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q2
  .endif
  vrshl.s32 q0, q0, q3
  vrshl.s32 q1, q1, q3
  orch_narrow
  vldrw.32 q1, [sp, #64]
  vctp.16 r2
  vpst
  vstrbt.16 q0, [r11, q1]
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
  orch_begin orch_packed_pixels_16
  push {r4-r11, lr}
  vpush {d8-d15}
  @ 0: what sums start with, twice; 32: sums; 64: where items go; 80: offset,
  @ twice the channels; 88: x, y; 96: pixels but two; 100: tiles, step of two
  @ outputs; 108: multipliers.
  sub sp, #124
  ldm r3, {r3, r4, r5, r6, r7, r8}
  subs r3, #2
  lsl r7, #1
  strd r8, r7, [sp, #80]
  strd r0, r2, [sp, #88]
  mov r7, r4
  lsl r4, r5, #1
  str r3, [sp, #96]
  strd r1, r4, [sp, #100]
  movs r0, #0
  vidup.u16 q0, r0, #1
  vshr.u16 q0, q0, #1
  lsl r5, r5, #16
  vdup.32 q1, r5
  vadd.i32 q0, q0, q1
  vstrw.32 q0, [sp, #64]
  add r5, sp, #32
1:
  ldr r1, [sp, #100]
  ldm r1!, {r0, r2, r4, r6}
  mov r3, sp
  stm r3!, {r0, r2, r4, r6}
  stm r3!, {r0, r2, r4, r6}
  vldrw.32 q4, [r1], #16
  vldrw.32 q5, [r1], #16
  vldrw.32 q6, [r1], #16
  vldrw.32 q7, [r1], #16
  vldrw.32 q2, [r1], #16
  vldrw.32 q3, [r1], #16
  vstrw.32 q2, [sp, #108]
  str r1, [sp, #100]
  ldrd r3, r11, [sp, #88]
  ldr r9, [sp, #96]
  ldr r0, [sp, #80]
  ldr r1, [sp, #104]
  cmn r0, #128
  bne 3f
  orch_stay
3:
  orch_stay ties
5:
  ldr r2, [sp, #92]
  adds r2, #4
  ldr r1, [sp, #84]
  str r2, [sp, #92]
  subs r1, #8
  str r1, [sp, #84]
  bgt 1b
  add sp, #124
  vpop {d8-d15}
  pop {r4-r11, pc}
  .size orch_packed_pixels_16, . - orch_packed_pixels_16
  .purgem orch_stay
  orch_pixels orch_packed_pixels_2, 2
  orch_pixels orch_packed_pixels_3, 3
  orch_pixels orch_packed_pixels_4, 4
)"
#endif
    R"(

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
  ldr r0, [sp, #32]
  orch_narrow
  vctp.16 r9
  vpst
  vstrbt.16 q0, [r5], #8
  subs r9, #8
  bgt 1b
  add sp, #44
  pop {r4-r11, pc}
  .size orch_packed_pixel, . - orch_packed_pixel
  .purgem orch_begin
  .purgem orch_narrow
  .purgem orch_sixteen_taps
  .purgem orch_pixels
  .text
)");

#ifndef __OPTIMIZE_SIZE__
/// Pixels of any depth. Loading the weights of a tile takes as long as is saved
/// at some seven pixels.
void compute_pixels(const int8_t* x, const uint8_t* tiles, int8_t* y,
                    const Run* run) {
  if (run->depth == 16 && run->count >= 8) {
    orch_packed_pixels_16(x, tiles, y, run);
  } else {
    orch_packed_pixels(x, tiles, y, run);
  }
}
#else
constexpr Loop& compute_pixels = orch_packed_pixels;
#endif

/// The same of any number of pixels, with an odd last one by itself.
template <Loop& kLoop>
void compute_apart(const int8_t* x, const uint8_t* tiles, int8_t* y,
                   const Run* run) {
  Run pairs = *run;
  pairs.count &= ~1;
  if (pairs.count != 0) kLoop(x, tiles, y, &pairs);
  if (pairs.count == run->count) return;
  orch_packed_one_pixel(x + pairs.count * run->x_step, tiles,
                        y + pairs.count * run->y_step, run);
}

/// Goes over all pixels of the output, from line to line of a column.
template <Loop& kLoop, bool kBand>
__attribute__((noinline)) void compute_columns(const PackedPixels& packed,
                                               const int8_t* image,
                                               const uint8_t* tiles,
                                               int8_t* strip, int8_t* y) {
  const PackedConvolution& conv = packed.conv;
  const int32_t channels = conv.in_channels;
  const int32_t line = packed.steps.x_line;
  const int32_t width = conv.columns.kernel * channels;
  const int8_t* const end = image + packed.in_bytes;
  Run run;
  run.y_step = packed.steps.y_line;
  run.depth = conv.depth;
  run.channels = conv.out_channels;
  run.offset = conv.offset;
  const Strip to = {width, 16, channels, packed.steps};
  Axis axis = conv.rows;
  // Windows without lines between them are parts of one strip.
  const bool joined = axis.dilation == 1 && axis.stride <= axis.kernel;
  image += packed.x_first;
  y += packed.y_first;
  for (int32_t n = 0; n < conv.batch; ++n) {
    int8_t* to_column = y;
    for (int32_t v = 0; v < conv.columns.out; ++v) {
      const Taps columns = taps_at(conv.columns, v);
      const int8_t* const top = image + columns.in * packed.steps.x_pixel;
      for (int32_t h = 0; h < axis.out;) {
        const int8_t* x = top + h * axis.stride * line;
        run.x_step = axis.stride * line;
        run.count = 0;
        if (packed.in_bytes != 0) {
          // Whole vectors are read, but none beyond the image.
          run.count = axis.out - h;
          while (run.count > 0 &&
                 end - x < (run.count - 1) * run.x_step + conv.depth) {
            --run.count;
          }
        }
        if (run.count == 0) {
          run.count = axis.out - h;
          if (run.count > packed.pixels) run.count = packed.pixels;
          x = strip;
          if (joined) {
            run.x_step = axis.stride * width;
            axis.kernel = (run.count - 1) * axis.stride + conv.rows.kernel;
            gather_lines<kBand>(conv, top, columns, axis, h, strip, to,
                                axis.kernel * width);
          } else {
            run.x_step = axis.kernel * width;
            for (int32_t i = 0; i < run.count; ++i) {
              gather_lines<kBand>(conv, top, columns, axis, h + i,
                                  strip + i * run.x_step, to, run.x_step);
            }
          }
        }
        kLoop(x, tiles, to_column + h * run.y_step, &run);
        h += run.count;
      }
      to_column += packed.steps.y_pixel;
    }
    y += packed.y_image;
    image += conv.rows.in * line;
  }
}

/// Computes all phases. Which loop is no argument: whatever has a pointer could
/// then be called, as far as bounds on the stack know.
template <Loop& kLoop, bool kBand = false>
void compute_phases(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const uint8_t* packed = static_cast<const uint8_t*>(call.header);
  const uint8_t* tiles = static_cast<const uint8_t*>(call.weights);
  const PackedPixels* phase;
  do {
    phase = reinterpret_cast<const PackedPixels*>(packed);
    if (call.weights == nullptr) tiles = packed + sizeof *phase;
    compute_columns<kLoop, kBand>(
        *phase, static_cast<const int8_t*>(call.input), tiles,
        static_cast<int8_t*>(call.scratch), static_cast<int8_t*>(call.out));
    packed += phase->next;
  } while (phase->next != 0);
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPixels, `weights` tiles of four channels; several have
// both in `header`, one after the other, and no `weights`. `scratch` has room
// for what some pixels see, and for a vector more. The build has checked
// everything.
void packed_pixels(const PreparedCall& call) {
  compute_phases<compute_pixels>(call);
}

Error packed_pixels_out(const Args& args) {
  return run_packed(packed_pixels, args);
}

// The same with limits: `int low, int high` in front of `out`.
void limited_packed_pixels(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels, call);
}

Error limited_packed_pixels_out(const Args& args) {
  return run_limited<PackedPixels>(packed_pixels, args);
}

// Prepared: the same for bands, which have few pixels, and strips of their own.
void packed_pixels_band(const PreparedCall& call) {
  compute_phases<compute_apart<compute_pixels>, true>(call);
}

void limited_packed_pixels_band(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_band, call);
}

#ifndef __OPTIMIZE_SIZE__
// The same for depths of a multiple of two, three or four vectors.
void packed_pixels_2(const PreparedCall& call) {
  compute_phases<orch_packed_pixels_2>(call);
}

Error packed_pixels_2_out(const Args& args) {
  return run_packed(packed_pixels_2, args);
}

void limited_packed_pixels_2(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_2, call);
}

Error limited_packed_pixels_2_out(const Args& args) {
  return run_limited<PackedPixels>(packed_pixels_2, args);
}

void packed_pixels_2_band(const PreparedCall& call) {
  compute_phases<compute_apart<orch_packed_pixels_2>, true>(call);
}

void limited_packed_pixels_2_band(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_2_band, call);
}

void packed_pixels_3(const PreparedCall& call) {
  compute_phases<orch_packed_pixels_3>(call);
}

Error packed_pixels_3_out(const Args& args) {
  return run_packed(packed_pixels_3, args);
}

void limited_packed_pixels_3(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_3, call);
}

Error limited_packed_pixels_3_out(const Args& args) {
  return run_limited<PackedPixels>(packed_pixels_3, args);
}

void packed_pixels_3_band(const PreparedCall& call) {
  compute_phases<compute_apart<orch_packed_pixels_3>, true>(call);
}

void limited_packed_pixels_3_band(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_3_band, call);
}

void packed_pixels_4(const PreparedCall& call) {
  compute_phases<orch_packed_pixels_4>(call);
}

Error packed_pixels_4_out(const Args& args) {
  return run_packed(packed_pixels_4, args);
}

void limited_packed_pixels_4(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_4, call);
}

Error limited_packed_pixels_4_out(const Args& args) {
  return run_limited<PackedPixels>(packed_pixels_4, args);
}

void packed_pixels_4_band(const PreparedCall& call) {
  compute_phases<compute_apart<orch_packed_pixels_4>, true>(call);
}

void limited_packed_pixels_4_band(const PreparedCall& call) {
  run_limited<PackedPixels>(packed_pixels_4_band, call);
}
#endif

// The same of a single pixel, as in a matrix product of one row: `header` is a
// PackedPixel, `weights` tiles of eight channels.
ORCH_HOT void packed_pixel(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int8_t* const patch = static_cast<int8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedPixel& pixel = *static_cast<const PackedPixel*>(call.header);
  const int32_t channels = pixel.conv.in_channels;
  if (pixel.conv.depth != channels) {
    copy_lines(x, 0, channels, 1, patch, {0, 16, 0, {}});
    x = patch;
  }
  orch_packed_pixel(x, static_cast<const uint8_t*>(call.weights), y, &pixel);
}

Error packed_pixel_out(const Args& args) {
  return run_packed(packed_pixel, args);
}

// The same with limits: `int low, int high` in front of `out`.
void limited_packed_pixel(const PreparedCall& call) {
  run_limited<PackedPixel>(packed_pixel, call);
}

Error limited_packed_pixel_out(const Args& args) {
  return run_limited<PackedPixel>(packed_pixel, args);
}

}  // namespace orch::cortex_m

#endif
