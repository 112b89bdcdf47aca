#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <string.h>

#include "int4.h"
#include "orch/kernel.h"
#include "packed_limits.h"
#include "packed_strip.h"

namespace orch::cortex_m {

// What packed weights are run with, one block of channels after the other.
void packed_pixels(const PreparedCall& call);
#if ORCH_FAVOUR_SPEED
void packed_pixels_2(const PreparedCall& call);
void packed_pixels_3(const PreparedCall& call);
void packed_pixels_4(const PreparedCall& call);
#endif

namespace {

constexpr int32_t kTile = 4;  // channels

/// Weights of a tile, of some vectors of taps with the same steps.
ORCH_ALWAYS_INLINE const uint8_t* expand(const uint8_t* from, int32_t vectors,
                                         const uint8_t* steps, uint8_t* to) {
  asm volatile(
      "dls lr, %[vectors]\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vshl.i8 q1, q0, #4\n"
      "vldrb.8 q2, [%[from]], #16\n"
      "vshr.s8 q1, q1, #4\n"
      "vmul.i8 q1, q1, %[s0]\n"
      "vstrb.8 q1, [%[to]], #16\n"
      "vshr.s8 q0, q0, #4\n"
      "vmul.i8 q0, q0, %[s1]\n"
      "vstrb.8 q0, [%[to]], #16\n"
      "vshl.i8 q1, q2, #4\n"
      "vshr.s8 q1, q1, #4\n"
      "vmul.i8 q1, q1, %[s2]\n"
      "vstrb.8 q1, [%[to]], #16\n"
      "vshr.s8 q2, q2, #4\n"
      "vmul.i8 q2, q2, %[s3]\n"
      "vstrb.8 q2, [%[to]], #16\n"
      "le lr, 1b\n"
      : [from] "+l"(from), [to] "+l"(to)
      : [vectors] "r"(vectors), [s0] "r"(steps[0]), [s1] "r"(steps[1]),
        [s2] "r"(steps[2]), [s3] "r"(steps[3])
      : "lr", "q0", "q1", "q2", "cc", "memory");
  return from;
}

/// Tiles of int8 weights, as packed_pixels reads them.
__attribute__((noinline)) const uint8_t* expand_tiles(const uint8_t* from,
                                                      int32_t tiles,
                                                      int32_t depth,
                                                      int32_t group,
                                                      uint8_t* to) {
  for (; tiles > 0; --tiles) {
    memcpy(to, from, 16);
    uint8_t* const scales = to + 16 + kTile * depth;
    memcpy(scales, from + 16, 16);
    from += 32;
    for (int i = 0; i < kTile; ++i) {
      const int32_t shift = static_cast<int8_t>(from[i]);
      memcpy(scales + 16 + 4 * i, &shift, sizeof shift);
    }
    from += kTile;
    to += 16;
    for (int32_t taps = depth; taps > 0; taps -= group) {
      const int32_t some = taps < group ? taps : group;
      from = expand(from + kTile, some / 16, from, to);
      to += kTile * some;
    }
    to += 32;
  }
  return from;
}

template <void (&kRun)(const PreparedCall&)>
void compute_blocks(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  PackedPixels header = *static_cast<const PackedPixels*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  const uint8_t* from =
      reinterpret_cast<const uint8_t*>(&packed) + sizeof packed;
  uint8_t* const block = static_cast<uint8_t*>(call.scratch);
  const int32_t bytes = packed.block * (48 + kTile * header.conv.depth);
  const PackedCall part = {{kRun}, call.input,    &header,
                           block,  block + bytes, call.out};
  const int32_t most = kTile * packed.block;
  for (int32_t left = header.conv.out_channels; left > 0; left -= most) {
    const int32_t channels = left < most ? left : most;
    from = expand_tiles(from, (channels + kTile - 1) / kTile, header.conv.depth,
                        packed.group, block);
    header.conv.out_channels = channels;
    kRun(part);
    header.y_first += channels;
  }
}

/// A single pixel. Known to the assembly.
struct Pixel {
  int32_t channels;
  int32_t depth;
  int32_t offset;  // added to outputs
  int32_t multiplier;
  int32_t shift;  // to the left, so not positive
  int32_t group;  // taps with one step
};

}  // namespace

// All output channels of a pixel, eight at a time. Weights are 16 times as
// large until their sums are complete.
extern "C" void orch_int4_pixel(const int8_t* x, const uint8_t* tiles,
                                int8_t* y, const Pixel* pixel);
asm(R"(
  .section .text.orch_int4_pixel, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_int4_pixel
  .hidden orch_int4_pixel
  .type orch_int4_pixel, %function
  .thumb_func
  .macro orch_two_channels first, second
  vldrw.32 q1, [r1], #16
  vshl.i8 q2, q1, #4
  vand q1, q1, q7
  vmladava.s8 \first, q0, q2
  vmladava.s8 \second, q0, q1
  .endm
orch_int4_pixel:
  push {r4-r11, lr}
  vpush {d10-d15}
  @ 0: sums; 32: x and its end; 40: group; 44: y; 48: channels left;
  @ 52: multiplier, shift, offset.
  sub sp, #64
  ldm r3, {r4, r5, r6, r7, r8, r9}
  add r5, r0
  strd r0, r5, [sp, #32]
  strd r9, r2, [sp, #40]
  strd r4, r7, [sp, #48]
  strd r8, r6, [sp, #56]
  movs r3, #0xf0
  vdup.8 q7, r3
1:
  vldrw.32 q5, [r1], #16
  vldrw.32 q6, [r1], #16
  ldr r3, [sp, #32]
2:
  ldrd r7, r5, [sp, #36]
  add r5, r3
  cmp r5, r7
  it hi
  movhi r5, r7
  mov r11, r1
  adds r1, #8
  movs r0, #0
  mov r2, r0
  mov r4, r0
  mov r6, r0
  mov r8, r0
  mov r10, r0
  mov r12, r0
  mov lr, r0
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

  ldrd r2, r4, [sp, #52]
  vqrdmulh.s32 q0, q5, r2
  vqrdmulh.s32 q1, q6, r2
  @ Ties of negative numbers go down, for which they are made smaller by one.
  asr r2, r4, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, r2
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, r2
  vrshl.s32 q0, r4
  vrshl.s32 q1, r4
  ldr r0, [sp, #60]
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  vqadd.s16 q0, q0, r0
  vqmovnb.s16 q0, q0
  ldrd r2, r4, [sp, #44]
  vctp.16 r4
  vpst
  vstrbt.16 q0, [r2], #8
  subs r4, #8
  strd r2, r4, [sp, #44]
  bgt 1b
  add sp, #64
  vpop {d10-d15}
  pop {r4-r11, pc}
  .size orch_int4_pixel, . - orch_int4_pixel
  .purgem orch_two_channels
  .text
)");

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPixels, `weights` an Int4Weights and tiles of four
// channels; `scratch` holds a block of tiles as packed_pixels reads them, then
// what that needs. The build has checked everything.
#define ORCH_INT4_PIXELS(name, limited, packed)                         \
  void name(const PreparedCall& call) { compute_blocks<packed>(call); } \
  ORCH_PACKED_FORMS(PackedPixels, name, limited)

ORCH_INT4_PIXELS(int4_packed_pixels, int4_limited_packed_pixels, packed_pixels)
#if ORCH_FAVOUR_SPEED
// For depths of a multiple of two, three or four vectors.
ORCH_INT4_PIXELS(int4_packed_pixels_2, int4_limited_packed_pixels_2,
                 packed_pixels_2)
ORCH_INT4_PIXELS(int4_packed_pixels_3, int4_limited_packed_pixels_3,
                 packed_pixels_3)
ORCH_INT4_PIXELS(int4_packed_pixels_4, int4_limited_packed_pixels_4,
                 packed_pixels_4)
#endif

// The same of a single pixel, as in a matrix product of one row: `header` is a
// PackedPixel, tiles are of eight channels.
ORCH_HOT void int4_packed_pixel(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int8_t* const patch = static_cast<int8_t*>(call.scratch);
  const PackedPixel& header = *static_cast<const PackedPixel*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  const PackedConvolution& conv = header.conv;
  if (conv.depth != conv.in_channels) {
    copy_lines(x, 0, conv.in_channels, 1, patch, {0, 16, 0, {}});
    x = patch;
  }
  const Pixel pixel = {conv.out_channels, conv.depth,   conv.offset,
                       header.multiplier, header.shift, packed.group};
  orch_int4_pixel(x, reinterpret_cast<const uint8_t*>(&packed) + sizeof packed,
                  static_cast<int8_t*>(call.out), &pixel);
}
ORCH_PACKED_FORMS(PackedPixel, int4_packed_pixel, int4_limited_packed_pixel)

}  // namespace orch::cortex_m

#endif
