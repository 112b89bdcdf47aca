#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP || ORCH_ISA == ORCH_ISA_MVE

#include <string.h>

#include "loop_macros_mve.h"
#include "orch/kernel.h"
#include "packed_limits.h"

namespace orch::cortex_m {
namespace {

#if ORCH_ISA == ORCH_ISA_DSP

/// What `orch_packed_depthwise` takes besides pointers. Known to the assembly.
struct Groups {
  int32_t pair_bytes;  // of the distances
  int32_t all_bytes;
  int32_t offset;
};

// All channels of a pixel. r0: `taps`, for each tap how far its first channel
// is from `base`; r1: `w`, groups; r2: `y`; r3: `groups`; then `base`.
extern "C" void orch_packed_depthwise(const int32_t* taps, const uint8_t* w,
                                      int8_t* y, const Groups* groups,
                                      const int8_t* base);
asm(R"(
  @ Two taps of two channels; both are used up.
  .macro orch_two_taps x, w, first, second
  sxtb16 lr, \x
  sxtb16 r5, \w
  smlad \first, lr, r5, \first
  sxtb16 \x, \x, ror #8
  sxtb16 \w, \w, ror #8
  smlad \second, \x, \w, \second
  .endm
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
)" ORCH_FUNCTION("orch_packed_depthwise") ORCH_SAVE R"(
  sub sp, #28
  .cfi_adjust_cfa_offset 28
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
  orch_two_taps r12, r6, r8, r9
  orch_two_taps r4, r7, r10, r11
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
  ldr r2, [sp, #12]
  cmp r1, r2
  bne 1b
  add sp, #28
)" ORCH_RETURN ORCH_END("orch_packed_depthwise") R"(
  .purgem orch_two_taps
  .purgem orch_scale
)");

#else

/// What `orch_packed_depthwise` takes besides pointers. Known to the assembly.
struct Groups {
  int32_t tap_bytes;  // of the distances
  int32_t channels;
  int32_t offset;
  uint8_t* columns;
};

/// Of 16 channels with 16 taps.
constexpr int32_t kColumnBytes = 16 * 16;

// All channels of a pixel; `taps`: for each tap how far its first channel is
// from `base`; `w`: groups of eight channels.
//
// 16 channels at a time, taps are brought together: four of each channel in a
// word, in blocks of four times 16 words. A load then takes 16 taps of a
// channel, and zeros where there are no more.
extern "C" void orch_packed_depthwise(const int32_t* taps, const uint8_t* w,
                                      int8_t* y, const Groups* groups,
                                      const int8_t* base);
asm(ORCH_LOOP_MACROS R"(
  @ Four taps of two channels, which lie four bytes apart, at four times each.
  .macro orch_four_times first, second, x=4, w=4
  vldrw.u32 q0, [q7, #\x]!
  vldrw.u32 q1, [q6, #\w]!
  vmladava.s8 \first, q0, q1
  vldrw.u32 q2, [q7, #4]!
  orch_load w.u32, q3, "[q6, #4]!", \second, q2, q3
  .endm
  @ 0: sums; 32: taps, their end, offset, columns; 48: bytes of weights of
  @ eight channels, blocks. Vectors of places begin a block in front of the
  @ first one, at the end of its eight channels.
  orch_begin orch_packed_depthwise, 60, d8-d15, 64
  ldm r3, {r4, r5, r6, r7}
  @ Four taps of eight channels are 32 bytes; a distance has four.
  lsl r8, r4, #1
  add r9, r4, #63
  lsr r9, #6
  strd r8, r9, [sp, #48]
  movs r8, #0
  vidup.u32 q5, r8, #8
  sub r8, r7, #228
  vshl.i32 q4, q5, #3
  vadd.i32 q4, q4, r8
  vshl.i32 q5, q5, #2
  mvn r8, #99
  vadd.i32 q5, q5, r8
  add r4, r0
  strd r0, r4, [sp, #32]
  strd r6, r7, [sp, #40]
  mov r9, r5
  mov r3, r2
  ldr r11, [sp, #160]
1:
  ldrd r5, r7, [sp, #32]
  ldr r8, [sp, #44]
  vctp.8 r9
2:
  ldrd r0, r2, [r5], #8
  ldrd r4, r6, [r5], #8
  .irp tap, r0, r2, r4, r6
  add \tap, r11
  .endr
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

  movs r7, #0
3:
  ldm r1!, {r0, r2, r4, r6, r8, r10, r12, lr}
  vadd.i32 q6, q5, r1
  vadd.i32 q7, q4, r7
  ldr r5, [sp, #48]
  add r1, r5
  ldr r5, [sp, #52]
5:
  orch_four_times r0, r8, 228, 100
  orch_four_times r2, r10
  orch_four_times r4, r12
  orch_four_times r6, lr
  subs r5, #1
  bne 5b
  orch_multiply "[r1], #16", "[r1], #16"
  vldrw.32 q2, [r1], #16
  vldrw.32 q3, [r1], #16
  orch_ties q6, q2, q3
  ldr r0, [sp, #40]
  orch_shift r0, q2, q3
  orch_store "[r3], #8", r9
  subs r9, #8
  ble 4f
  adds r7, #32
  cmp r7, #64
  bne 3b
  add r11, #16
  b 1b
4:
  orch_return 60, d8-d15
  orch_end orch_packed_depthwise
  .purgem orch_four_times
)" ORCH_LOOP_MACROS_END);

#endif

/// Writes how far from the image each tap of a pixel is whose first one is at
/// `row` and `column`; for those outside of the image that is `padding`, as for
/// those beyond the last one, which have no weights.
ORCH_HOT void find_taps(const PackedDepthwise& conv, int32_t row,
                        int32_t column, int32_t padding, int32_t* to) {
  // Copies, as what is written could be where these numbers are.
  const Axis rows = conv.rows;
  const Taps columns = taps_from(conv.columns, column);
  const int32_t step = conv.columns.dilation * conv.channels;
  const int32_t line = conv.columns.in * conv.channels;
  const int32_t first = columns.in * conv.channels;
  const int32_t behind = conv.columns.kernel - columns.first - columns.count;
  const auto pad = [&](int32_t count) __attribute__((always_inline)) {
    ORCH_FEW_ROUNDS
    for (; count > 0; --count) *to++ = padding;
  };
  ORCH_FEW_ROUNDS
  for (int32_t i = rows.kernel; i > 0; --i) {
    const bool inside =
        static_cast<uint32_t>(row) < static_cast<uint32_t>(rows.in);
    int32_t at = inside ? row * line + first : padding;
    const int32_t next = inside ? step : 0;
    pad(columns.first);
    ORCH_FEW_ROUNDS
    for (int32_t count = columns.count; count > 0; --count) {
      *to++ = at;
      at += next;
    }
    pad(behind);
    row += rows.dilation;
  }
  pad(2 * conv.pairs - rows.kernel * conv.columns.kernel);
}

/// Whether all taps lie in the image if the first one is at `first`.
ORCH_ALWAYS_INLINE bool lies_inside(const Axis& axis, int32_t first) {
  return first >= 0 && first + (axis.kernel - 1) * axis.dilation < axis.in;
}

}  // namespace

// What the build makes of cortex_m::quantized_depthwise_conv2d.out: (Tensor
//   input, Tensor packed, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// `packed` is a PackedDepthwise; `scratch` holds distances to the taps of a
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
  const int32_t pair_bytes =
      conv.pairs * static_cast<int32_t>(2 * sizeof(int32_t));
  int32_t* const taps = reinterpret_cast<int32_t*>(scratch);
  scratch += pair_bytes;
  // Where all taps lie in the image, all pixels have them at the same distances
  // from the first one.
  int32_t* const inside = reinterpret_cast<int32_t*>(scratch);
  scratch += pair_bytes;
#if ORCH_ISA == ORCH_ISA_DSP
  const Groups groups = {pair_bytes, conv.group_bytes, conv.offset};
#else
  const Groups groups = {pair_bytes, conv.channels, conv.offset, scratch};
  const int32_t columns_bytes = (conv.pairs + 7) / 8 * kColumnBytes;
  memset(scratch, 0, static_cast<size_t>(columns_bytes));
  scratch += columns_bytes;
#endif
  find_taps(conv, 0, 0, 0, inside);
  int8_t* const padding = reinterpret_cast<int8_t*>(scratch);
  memset(padding, conv.padding, static_cast<size_t>(conv.channels));
  for (int32_t n = 0; n < conv.batch; ++n) {
    const int32_t to_padding =
        static_cast<int32_t>(reinterpret_cast<intptr_t>(padding) -
                             reinterpret_cast<intptr_t>(image));
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const int32_t row = h * conv.rows.stride - conv.rows.padding;
        const int32_t column = v * conv.columns.stride - conv.columns.padding;
        if (lies_inside(conv.rows, row) && lies_inside(conv.columns, column)) {
          const int8_t* base =
              image + (row * conv.columns.in + column) * conv.channels;
          orch_packed_depthwise(inside, packed, y, &groups, base);
        } else {
          find_taps(conv, row, column, to_padding, taps);
          orch_packed_depthwise(taps, packed, y, &groups, image);
        }
        y += conv.outputs;
      }
    }
    image += conv.rows.in * conv.columns.in * conv.channels;
  }
}
ORCH_PACKED_FORMS(PackedDepthwise, packed_depthwise, limited_packed_depthwise)

}  // namespace orch::cortex_m

#endif
