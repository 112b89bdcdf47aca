#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP || ORCH_ISA == ORCH_ISA_MVE

#include <string.h>

#include "orch/kernel.h"
#include "packed.h"
#include "packed_limits.h"

namespace orch::cortex_m {
namespace {

#if ORCH_ISA == ORCH_ISA_DSP

/// What `orch_packed_depthwise` takes besides pointers. Known to the assembly.
struct Groups {
  int32_t pair_bytes;  // of the pointers
  int32_t all_bytes;
  int32_t offset;
};

// All channels of a pixel. r0: `taps`, for each tap how far its first channel
// is from `base`; r1: `w`, groups; r2: `y`; r3: `groups`; then `base`.
extern "C" void orch_packed_depthwise(const int8_t* const* taps,
                                      const uint8_t* w, int8_t* y,
                                      const Groups* groups, const int8_t* base);
asm(R"(
  .section .text.orch_packed_depthwise, "ax", %progbits
  .syntax unified
  .thumb
  @ Twice a sum, scaled and stored at r8 and an output channel; r9 is added
  @ before. The product is rounded up at ties. Then ties are rounded away from
  @ zero: what a shift drops last is its carry, and a negative number is made
  @ smaller by one before.
  .macro orch_scale sum, multiplier, to
  smmulr \sum, \sum, \multiplier
  adds \sum, \sum, \sum, asr #31
  asrs \sum, \to
  adc \sum, \sum, r9
  ssat \sum, #8, \sum
  lsr \to, \to, #8
  strb \sum, [r8, \to]
  .endm
  .balign 4
  .globl orch_packed_depthwise
  .hidden orch_packed_depthwise
  .type orch_packed_depthwise, %function
  .thumb_func
orch_packed_depthwise:
  push {r4-r11, lr}
  sub sp, #28
  ldm r3, {r4, r5, r6}
  add r4, r0
  add r5, r1
  strd r0, r2, [sp]
  strd r4, r5, [sp, #8]
  str r6, [sp, #16]
1:
  ldm r1!, {r2, r8, r9, r10, r11}
  ldr r3, [sp, #64]
  ldr r0, [sp]
  add r2, r3
  ldr r3, [sp, #8]
2:
  ldrd r4, r5, [r0], #8
  ldrd r6, r7, [r1], #8
  ldr r4, [r4, r2]
  ldr r5, [r5, r2]
  pkhbt r12, r4, r5, lsl #16
  pkhtb r4, r5, r4, asr #16
  sxtb16 lr, r12
  sxtb16 r5, r6
  smlad r8, lr, r5, r8
  sxtb16 r12, r12, ror #8
  sxtb16 r6, r6, ror #8
  smlad r9, r12, r6, r9
  sxtb16 lr, r4
  sxtb16 r5, r7
  smlad r10, lr, r5, r10
  sxtb16 r4, r4, ror #8
  sxtb16 r7, r7, ror #8
  smlad r11, r4, r7, r11
  cmp r0, r3
  bne 2b
  lsl r2, r8, #1
  lsl r3, r9, #1
  lsl r10, #1
  lsl r11, #1
  ldr r8, [sp, #4]
  ldr r9, [sp, #16]
  ldm r1!, {r0, r4, r5, r6, r7, r12}
  orch_scale r2, r0, r4
  orch_scale r3, r5, r6
  orch_scale r10, r7, r12
  ldm r1!, {r0, r4}
  orch_scale r11, r0, r4
  .purgem orch_scale
  ldr r2, [sp, #12]
  cmp r1, r2
  bne 1b
  add sp, #28
  pop {r4-r11, pc}
  .size orch_packed_depthwise, . - orch_packed_depthwise
  .text
)");

#else

/// What `orch_packed_depthwise` takes besides pointers. Known to the assembly.
struct Groups {
  int32_t tap_bytes;  // of the pointers
  int32_t channels;
  int32_t offset;
  uint8_t* columns;
};

/// Of 16 channels with four taps, four times.
constexpr int32_t kColumnBytes = 16 * 4 * 4;

// All channels of a pixel. r0: `taps`, for each tap how far its first channel
// is from `base`; r1: `w`, groups of eight channels; r2: `y`; r3: `groups`;
// then `base`.
//
// 16 channels at a time, taps are brought together: four of each channel in a
// word, up to four times 16 words. A load then takes all taps of a channel, and
// zeros where there are no more.
extern "C" void orch_packed_depthwise(const int8_t* const* taps,
                                      const uint8_t* w, int8_t* y,
                                      const Groups* groups, const int8_t* base);
asm(R"(
  .section .text.orch_packed_depthwise, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_depthwise
  .hidden orch_packed_depthwise
  .type orch_packed_depthwise, %function
  .thumb_func
  .macro orch_two_channels first, second
  vldrw.u32 q0, [q7, #4]!
  vldrw.u32 q1, [q6, #4]!
  vmladava.s8 \first, q0, q1
  vldrw.u32 q2, [q7, #4]!
  vldrw.u32 q3, [q6, #4]!
  vmladava.s8 \second, q2, q3
  .endm
orch_packed_depthwise:
  push {r4-r11, lr}
  vpush {d10-d15}
  sub sp, #52
  ldm r3, {r4, r5, r6, r7}
  @ Four taps of eight channels are 32 bytes; a pointer to a tap has four.
  lsl r8, r4, #1
  str r8, [sp, #48]
  movs r8, #0
  vidup.u32 q5, r8, #8
  subs r7, #4
  vshl.i32 q7, q5, #3
  vadd.i32 q7, q7, r7
  vshl.i32 q5, q5, #2
  mvn r8, #3
  vadd.i32 q5, q5, r8
  adds r7, #4
  add r4, r0
  strd r0, r4, [sp, #32]
  strd r6, r7, [sp, #40]
  mov r9, r5
  mov r3, r2
  ldr r11, [sp, #136]
1:
  ldrd r5, r7, [sp, #32]
  ldr r8, [sp, #44]
  vctp.8 r9
2:
  ldrd r0, r2, [r5], #8
  ldrd r4, r6, [r5], #8
  add r0, r11
  add r2, r11
  add r4, r11
  add r6, r11
  vpstttt
  vldrbt.8 q0, [r0]
  vldrbt.8 q1, [r2]
  vldrbt.8 q2, [r4]
  vldrbt.8 q3, [r6]
  vst40.8 {q0, q1, q2, q3}, [r8]
  vst41.8 {q0, q1, q2, q3}, [r8]
  vst42.8 {q0, q1, q2, q3}, [r8]
  vst43.8 {q0, q1, q2, q3}, [r8]!
  cmp r5, r7
  bne 2b

  movs r7, #2
  ldr r5, [sp, #48]
3:
  ldm r1!, {r0, r2, r4, r6, r8, r10, r12, lr}
  vadd.i32 q6, q5, r1
  add r1, r5
  orch_two_channels r0, r8
  orch_two_channels r2, r10
  orch_two_channels r4, r12
  orch_two_channels r6, lr
  stm sp, {r0, r2, r4, r6, r8, r10, r12, lr}
  vldrw.32 q2, [r1], #16
  vldrw.32 q0, [sp]
  vqrdmulh.s32 q0, q0, q2
  vldrw.32 q2, [r1], #16
  vldrw.32 q1, [sp, #16]
  vqrdmulh.s32 q1, q1, q2
  @ Ties of negative numbers go down, for which they are made smaller by one.
  @ Without a shift there are none.
  vldrw.32 q3, [r1], #16
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q0, zr
  vaddt.i32 q0, q0, q2
  vrshl.s32 q0, q0, q3
  vldrw.32 q3, [r1], #16
  vshr.s32 q2, q3, #31
  vpt.s32 lt, q1, zr
  vaddt.i32 q1, q1, q2
  vrshl.s32 q1, q1, q3
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  ldr r0, [sp, #40]
  vqadd.s16 q0, q0, r0
  vqmovnb.s16 q0, q0
  vctp.16 r9
  vpst
  vstrbt.16 q0, [r3], #8
  subs r9, #8
  ble 4f
  subs r7, #1
  bne 3b
  add r11, #16
  @ Back to the first channel.
  mvn r0, #63
  vadd.i32 q7, q7, r0
  b 1b
4:
  add sp, #52
  vpop {d10-d15}
  pop {r4-r11, pc}
  .size orch_packed_depthwise, . - orch_packed_depthwise
  .purgem orch_two_channels
  .text
)");

#endif

/// Writes where each tap of a pixel begins; taps outside of the image are
/// padding.
ORCH_HOT void point_to_taps(const PackedDepthwise& conv, const int8_t* image,
                            int32_t h, int32_t v, const int8_t* padding,
                            const int8_t** to) {
  const int8_t** const end = to + 2 * conv.pairs;
  int32_t row = h * conv.rows.stride - conv.rows.padding;
  ORCH_FEW_ROUNDS
  for (int32_t i = 0; i < conv.rows.kernel; ++i) {
    const bool inside =
        static_cast<uint32_t>(row) < static_cast<uint32_t>(conv.rows.in);
    const int8_t* line = image + row * conv.columns.in * conv.channels;
    int32_t column = v * conv.columns.stride - conv.columns.padding;
    ORCH_FEW_ROUNDS
    for (int32_t j = 0; j < conv.columns.kernel; ++j) {
      const bool both = inside && static_cast<uint32_t>(column) <
                                      static_cast<uint32_t>(conv.columns.in);
      *to++ = both ? line + column * conv.channels : padding;
      column += conv.columns.dilation;
    }
    row += conv.rows.dilation;
  }
  ORCH_FEW_ROUNDS
  while (to != end) *to++ = padding;
}

/// Whether all taps lie in the image if the first one is at `first`.
ORCH_ALWAYS_INLINE bool lies_inside(const Axis& axis, int32_t first) {
  return first >= 0 && first + (axis.kernel - 1) * axis.dilation < axis.in;
}

/// Writes how far each tap is from the first one. Those beyond the last one
/// have no weights.
void measure_taps(const PackedDepthwise& conv, const int8_t** to) {
  const int8_t** const end = to + 2 * conv.pairs;
  ORCH_FEW_ROUNDS
  for (int32_t i = 0; i < conv.rows.kernel; ++i) {
    const int32_t row = i * conv.rows.dilation * conv.columns.in;
    ORCH_FEW_ROUNDS
    for (int32_t j = 0; j < conv.columns.kernel; ++j) {
      const int32_t items = (row + j * conv.columns.dilation) * conv.channels;
      *to++ = reinterpret_cast<const int8_t*>(items);
    }
  }
  ORCH_FEW_ROUNDS
  while (to != end) *to++ = nullptr;
}

}  // namespace

// What the build makes of cortex_m::quantized_depthwise_conv2d.out: (Tensor
//   input, Tensor packed, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// `packed` is a PackedDepthwise; `scratch` holds pointers to the taps of a
// pixel, with vector instructions taps of 16 channels, then a pixel of padding.
// The build has checked everything.
void packed_depthwise(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* image = static_cast<const int8_t*>(call.input);
  const uint8_t* packed = static_cast<const uint8_t*>(call.weights);
  uint8_t* scratch = static_cast<uint8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedDepthwise& conv =
      *static_cast<const PackedDepthwise*>(call.header);
  const int32_t pair_bytes = conv.pairs * static_cast<int32_t>(2 * sizeof y);
  const int8_t** const taps = reinterpret_cast<const int8_t**>(scratch);
  scratch += pair_bytes;
  // Where all taps lie in the image, all pixels have them at the same
  // distances.
  const int8_t** const inside = reinterpret_cast<const int8_t**>(scratch);
  scratch += pair_bytes;
#if ORCH_ISA == ORCH_ISA_DSP
  const Groups groups = {pair_bytes, conv.group_bytes, conv.offset};
#else
  const Groups groups = {pair_bytes, conv.channels, conv.offset, scratch};
  memset(scratch, 0, kColumnBytes);
  scratch += kColumnBytes;
#endif
  measure_taps(conv, inside);
  int8_t* const padding = reinterpret_cast<int8_t*>(scratch);
  memset(padding, conv.padding, static_cast<size_t>(conv.channels));
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const int32_t row = h * conv.rows.stride - conv.rows.padding;
        const int32_t column = v * conv.columns.stride - conv.columns.padding;
        if (lies_inside(conv.rows, row) && lies_inside(conv.columns, column)) {
          const int8_t* base =
              image + (row * conv.columns.in + column) * conv.channels;
          orch_packed_depthwise(inside, packed, y, &groups, base);
        } else {
          point_to_taps(conv, image, h, v, padding, taps);
          orch_packed_depthwise(taps, packed, y, &groups, nullptr);
        }
        y += conv.channels;
      }
    }
    image += conv.rows.in * conv.columns.in * conv.channels;
  }
}
ORCH_PACKED_FORMS(PackedDepthwise, packed_depthwise, limited_packed_depthwise)

}  // namespace orch::cortex_m

#endif
