#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include <string.h>

#include "orch/kernel.h"
#include "packed.h"

namespace orch::cortex_m {
namespace {

/// What `orch_packed_depthwise` takes besides pointers.
struct Groups {
  int32_t pair_bytes;  // of the pointers
  int32_t all_bytes;
  int32_t offset;
};

// All channels of a pixel. r0: `taps`, for each tap its first channel; r1: `w`,
// groups; r2: `y`; r3: `groups`.
extern "C" void orch_packed_depthwise(const int8_t* const* taps,
                                      const uint8_t* w, int8_t* y,
                                      const Groups* groups);
asm(ORCH_SCALE_MACRO R"(
  .section .text.orch_packed_depthwise, "ax", %progbits
  .syntax unified
  .thumb
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
  ldr r0, [sp]
  ldm r1!, {r2, r8, r9, r10, r11}
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

/// Writes where each tap of a pixel begins; taps outside of the image are
/// padding.
ORCH_HOT void point_to_taps(const PackedDepthwise& conv, const int8_t* image,
                            int32_t h, int32_t v, const int8_t* padding,
                            const int8_t** to) {
  const int8_t** const end = to + 2 * conv.pairs;
  int32_t row = h * conv.rows.stride - conv.rows.padding;
  for (int32_t i = 0; i < conv.rows.kernel; ++i) {
    const bool inside =
        static_cast<uint32_t>(row) < static_cast<uint32_t>(conv.rows.in);
    const int8_t* line = image + row * conv.columns.in * conv.channels;
    int32_t column = v * conv.columns.stride - conv.columns.padding;
    for (int32_t j = 0; j < conv.columns.kernel; ++j) {
      const bool both = inside && static_cast<uint32_t>(column) <
                                      static_cast<uint32_t>(conv.columns.in);
      *to++ = both ? line + column * conv.channels : padding;
      column += conv.columns.dilation;
    }
    row += conv.rows.dilation;
  }
  if (to != end) *to = padding;
}

}  // namespace

// What the build makes of cortex_m::quantized_depthwise_conv2d.out: (Tensor
//   input, Tensor packed, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// `packed` is a PackedDepthwise; `scratch` holds pointers to the taps of a
// pixel, then a pixel of padding. The build has checked everything.
Error packed_depthwise_out(const Args& args) {
  const int8_t* image = args.tensor(0).data<int8_t>();
  const uint8_t* packed =
      reinterpret_cast<const uint8_t*>(args.tensor(1).data<int32_t>());
  uint8_t* scratch = args.tensor(2).mutable_data<uint8_t>();
  int8_t* y = args.tensor(3).mutable_data<int8_t>();
  const PackedDepthwise& conv =
      *reinterpret_cast<const PackedDepthwise*>(packed);
  packed += sizeof conv;
  const int32_t pair_bytes = conv.pairs * static_cast<int32_t>(2 * sizeof y);
  const Groups groups = {pair_bytes, conv.group_bytes, conv.offset};
  const int8_t** const taps = reinterpret_cast<const int8_t**>(scratch);
  int8_t* const padding = reinterpret_cast<int8_t*>(scratch + pair_bytes);
  memset(padding, conv.padding, static_cast<size_t>(conv.channels));
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        point_to_taps(conv, image, h, v, padding, taps);
        orch_packed_depthwise(taps, packed, y, &groups);
        y += conv.channels;
      }
    }
    image += conv.rows.in * conv.columns.in * conv.channels;
  }
  return Error::Ok;
}

}  // namespace orch::cortex_m

#endif
