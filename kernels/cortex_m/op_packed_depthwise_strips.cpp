#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <stddef.h>

#include "loop_macros_mve.h"
#include "orch/kernel.h"
#include "packed_limits.h"
#include "packed_strip.h"

namespace orch::cortex_m {
namespace {

/// A column of a strip: of 16 channels, the four inputs that lie across.
constexpr int32_t kColumnBytes = 16 * 4;
/// What the fourth word of taps is: zeros for two pixels.
constexpr int32_t kZeroBytes = 2 * kColumnBytes;
/// Inputs that do not exist.
constexpr int32_t kPaddingBytes = 16;

/// The columns of a strip that are in the image, every `stride`-th of it.
/// Known to the assembly.
struct Phase {
  uint8_t* to;
  int32_t count;
  int32_t offset;  // of the first one, from the start of the line
};

/// More phases than this have no strips.
constexpr int32_t kMostPhases = 4;

/// What a strip is made of and for. Known to the assembly.
struct Lines {
  const int8_t* in[4];   // where lines begin, or padding
  int32_t steps[4];      // of these, from column to column; 0 for padding
  const uint8_t* at[4];  // the words of the first pixel
  int32_t turn[4];       // to those of the next pixel but one
  const Phase* phases;
  const Phase* end;
  const uint8_t* scales;
  const uint8_t* weights;
  int8_t* y;
  int32_t channels;
  int32_t count;        // of output lines
  int32_t pixel_bytes;  // from an output pixel to the next one
  int32_t line_bytes;   // from an output line to the next one
  int32_t first_bytes;  // of pixels, if odd, of two of them; of all but one in
                        // a band
  int32_t all_bytes;
};

static_assert(sizeof(Phase) == 12 && offsetof(Lines, phases) == 64 &&
                  offsetof(Lines, all_bytes) == 104,
              "the assembly knows where things are");

// All channels of some pixels of a few lines.
//
// For 16 channels at a time, first the strip: four inputs across in a word, for
// each channel and column. The taps of a pixel are then a word from each of
// three columns, and the loop takes two pixels and four channels at once, 0, 2,
// 4 and 6 before 1, 3, 5 and 7. Weights that are read from a byte before are
// those of the next line. If the pixels are odd in number, the second one is
// computed twice; in a band, where it counts, the last one is by itself.
extern "C" void orch_packed_depthwise_strips(const Lines* lines);
extern "C" void orch_packed_depthwise_strips_band(const Lines* lines);
asm(ORCH_LOOP_MACROS R"(
  @ A channel of two pixels, or of one, whose taps are a word from each of four
  @ columns.
  .macro orch_channel weights, word, first, second, next=12
  vldrb.8 \weights, [r7], #\next
  orch_load w.u32, q0, "[q7, #\word]", \first, q0, \weights
  .ifnb \second
  orch_load w.u32, q1, "[q7, #\word + 64]", \second, q1, \weights
  .endif
  .endm
  @ Four channels; `narrow` puts them into every other lane.
  .macro orch_four_channels word, narrow, to_weights, to_scales
  ldm r1, {r0, r2, r4, r6}
  ldm r1!, {r8, r10, r12, lr}
  orch_channel q3, \word, r0, r8
  orch_channel q2, \word + 8, r2, r10
  orch_channel q3, \word + 16, r4, r12
  orch_channel q2, \word + 24, r6, lr, \to_weights
  orch_multiply "[r1], #16"
  vldrw.u32 q3, [r1], #\to_scales
  vrshl.s32 q0, q0, q3
  vrshl.s32 q1, q1, q3
  \narrow q4, q0
  \narrow q5, q1
  .endm
  .macro orch_strips name, band
  @ 0: sums; 32: lines; 36: first channel; 40: channels left; 44: y of a line;
  @ 48: lines left; 52: end of y; 56: words of a subgroup; 60: scales;
  @ 64: weights; 68: y of a subgroup.
  orch_begin \name, 76, d8-d15, 64
  str r0, [sp, #32]
  ldrd r1, r2, [r0, #72]
  strd r1, r2, [sp, #60]
  movs r1, #0
  ldr r2, [r0, #84]
1:
  strd r1, r2, [sp, #36]
  ldr r12, [sp, #32]
  ldrd r0, r1, [r12, #64]
2:
  ldm r0!, {r2, r3, r4}
  ldrd r5, r6, [sp, #36]
  add r4, r5
  vldrw.u32 q0, [r12]
  vldrw.u32 q1, [r12, #16]
  vpt.i32 ne, q1, zr
  vaddt.i32 q0, q0, r4
  vctp.8 r6
  @ The first register is of the lane that is named last.
  vmov r4, r5, q0[2], q0[0]
  vmov r6, r7, q0[3], q0[1]
  ldrd r8, r9, [r12, #16]
  ldrd r10, r11, [r12, #24]
  wls lr, r3, 4f
3:
  vpstttt
  vldrbt.8 q0, [r4]
  vldrbt.8 q1, [r6]
  vldrbt.8 q2, [r5]
  vldrbt.8 q3, [r7]
  add r4, r8
  vst40.8 {q0, q1, q2, q3}, [r2]
  add r6, r9
  vst41.8 {q0, q1, q2, q3}, [r2]
  add r5, r10
  vst42.8 {q0, q1, q2, q3}, [r2]
  add r7, r11
  vst43.8 {q0, q1, q2, q3}, [r2]!
  le lr, 3b
4:
  cmp r0, r1
  bne 2b

  ldrd r1, r7, [sp, #60]
  ldr r3, [r12, #80]
  ldr r2, [sp, #36]
  add r3, r2
  movs r2, #0
  mvn r5, #127
5:
  str r2, [sp, #56]
  str r3, [sp, #68]
  ldr r0, [r12, #88]
6:
  strd r3, r0, [sp, #44]
  vldrw.u32 q7, [r12, #32]
  vldrw.u32 q6, [r12, #48]
  vadd.i32 q7, q7, r2
  ldr r9, [r12, #92]
  ldrd r0, r2, [r12, #100]
  add r11, r3, r0
  add r2, r3
  str r2, [sp, #52]
  ldr r2, [sp, #40]
  vctp.16 r2
7:
  orch_four_channels 0, vqmovnb.s32, 12, 16
  orch_four_channels 4, vqmovnt.s32, -84, -80
  vadd.i32 q7, q7, q6
  @ This also makes ties of negative numbers right, which end at the limit.
  vqadd.s16 q4, q4, r5
  vqadd.s16 q5, q5, r5
  vqmovnb.s16 q4, q4
  vqmovnb.s16 q5, q5
  add r0, r3, r9
  vpstt
  vstrbt.16 q4, [r3]
  vstrbt.16 q5, [r0]
  add r3, r0, r9
  cmp r3, r11
  bne 7b
  ldr r0, [sp, #52]
  cmp r3, r0
  beq 8f
  .ifnb \band
  @ Eight channels of the last pixel, 0, 2, 4 and 6 first.
  ldm r1!, {r0, r2, r4, r6}
  adds r1, #32
  ldm r1!, {r8, r10, r12, lr}
  orch_channel q3, 0, r0
  orch_channel q2, 8, r2
  orch_channel q3, 16, r4
  orch_channel q2, 24, r6
  orch_channel q3, 4, r8
  orch_channel q2, 12, r10
  orch_channel q3, 20, r12
  orch_channel q2, 28, lr, , -84
  orch_multiply "[r1, #-48]", "[r1]"
  vldrw.32 q2, [r1, #-32]
  vldrw.32 q3, [r1, #16]
  orch_shift r5, q2, q3
  subs r1, #64
  vpst
  vstrbt.16 q0, [r3]
  .else
  @ A pixel back.
  mov r11, r0
  sub r3, r9
  vshr.u32 q0, q6, #1
  vsub.i32 q7, q7, q0
  b 7b
  .endif
8:
  ldr r12, [sp, #32]
  ldrd r3, r0, [sp, #44]
  subs r0, #1
  beq 9f
  subs r7, #1
  ldr r2, [r12, #96]
  add r3, r2
  ldr r2, [sp, #56]
  b 6b
9:
  ldr r0, [r12, #88]
  add r7, r0
  adds r7, #95
  adds r1, #96
  ldr r2, [sp, #40]
  subs r2, #8
  ble 10f
  str r2, [sp, #40]
  ldr r3, [sp, #68]
  adds r3, #8
  ldr r0, [sp, #56]
  movs r2, #32
  cmp r0, #0
  beq 5b
  strd r1, r7, [sp, #60]
  ldrd r1, r2, [sp, #36]
  adds r1, #16
  b 1b
10:
  orch_return 76, d8-d15
  orch_end \name
  .endm
  orch_strips orch_packed_depthwise_strips
  orch_strips orch_packed_depthwise_strips_band, band
  .purgem orch_channel; .purgem orch_four_channels; .purgem orch_strips
)" ORCH_LOOP_MACROS_END);

/// Phases of a strip that have all columns. Of others the last one is behind
/// all windows.
ORCH_ALWAYS_INLINE int32_t full_phases(const PackedDepthwiseStrips& conv) {
  if (conv.phases == 1) return 1;
  const Axis& along = conv.along;
  return (along.kernel - 1) * along.dilation % along.stride + 1;
}

/// Finds what is in the image of each `axis.stride`-th column from that of
/// output `first` on, for as many columns as a strip needs.
template <bool kBand>
void find_phases(const PackedDepthwiseStrips& conv, int32_t first,
                 int32_t columns, uint8_t* strip, Phase* phases) {
  const Axis& axis = conv.along;
  int32_t column = first * axis.stride - axis.padding;
  for (int32_t i = 0; i < conv.phases; ++i) {
    if (i != 0 && i == full_phases(conv)) --columns;
    const int32_t before =
        column < 0 ? (axis.stride - 1 - column) / axis.stride : 0;
    int32_t end = (axis.in - column + axis.stride - 1) / axis.stride;
    if (end > columns) end = columns;
    phases[i] = {strip + before * kColumnBytes, end > before ? end - before : 0,
                 (column + before * axis.stride) * conv.in_along};
    if constexpr (kBand) {
      // Columns outside of the image stay as they are now.
      int8_t* const to = reinterpret_cast<int8_t*>(strip);
      const int32_t begin = before < columns ? before : columns;
      if (end < begin) end = begin;
      fill(to, begin * kColumnBytes, conv.padding);
      fill(to + end * kColumnBytes, (columns - end) * kColumnBytes,
           conv.padding);
    }
    strip += conv.columns * kColumnBytes;
    ++column;
  }
}

/// Goes over all lines. Which loop is no argument: whatever has a pointer could
/// then be called, as far as bounds on the stack know.
template <bool kBand>
void run(const PackedCall& call) {
  const int8_t* image = static_cast<const int8_t*>(call.input);
  uint8_t* const zeros = static_cast<uint8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const PackedDepthwiseStrips& conv =
      *static_cast<const PackedDepthwiseStrips*>(call.header);
  uint8_t* const padding = zeros + kZeroBytes;
  uint8_t* const strip = padding + kPaddingBytes;
  fill(reinterpret_cast<int8_t*>(zeros), kZeroBytes, 0);
  if constexpr (kBand) {
    fill_vector(padding, conv.padding);
  }

  Phase phases[kMostPhases];
  Lines lines;  // filled bit by bit: it is large for a call of one line
  for (int32_t i = 0; i < 3; ++i) {
    lines.at[i] = strip + conv.at[i];
    lines.turn[i] = kZeroBytes;
  }
  lines.at[3] = zeros;
  lines.turn[3] = 0;
  lines.phases = phases;
  lines.end = phases + conv.phases;
  lines.weights = static_cast<const uint8_t*>(call.weights) + sizeof(int32_t);
  lines.scales = lines.weights + conv.weight_bytes;
  lines.channels = conv.channels;
  lines.pixel_bytes = conv.out_along;
  lines.line_bytes = conv.out_across;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t v = 0; v < conv.along.out;) {
      int32_t pixels = conv.along.out - v;
      if (pixels > conv.pixels) pixels = conv.pixels;
      if (pixels == 1) {
        --v;
        pixels = 2;
      }
      lines.all_bytes = pixels * conv.out_along;
      lines.first_bytes = (pixels & 1)
                              ? (kBand ? pixels - 1 : 2) * conv.out_along
                              : lines.all_bytes;
      const int32_t columns = pixels + conv.columns - conv.pixels;
      find_phases<kBand>(conv, v, columns, strip, phases);
      if constexpr (!kBand) {
        // Columns outside of the image stay as they are now.
        const int32_t all = conv.phases * conv.columns;
        const bool is_full = conv.phases <= full_phases(conv);
        fill(reinterpret_cast<int8_t*>(padding),
             kPaddingBytes + (is_full ? all : all - 1) * kColumnBytes,
             conv.padding);
      }
      int32_t first = -conv.across.padding;
      for (int32_t h = 0; h < conv.across.out; h += conv.lines) {
        for (int32_t i = 0; i < 4; ++i) {
          const int32_t line = first + i * conv.across.dilation;
          const bool inside = static_cast<uint32_t>(line) <
                              static_cast<uint32_t>(conv.across.in);
          lines.in[i] = inside ? image + line * conv.in_across
                               : reinterpret_cast<int8_t*>(padding);
          lines.steps[i] = inside ? conv.along.stride * conv.in_along : 0;
        }
        lines.y = y + h * conv.out_across + v * conv.out_along;
        lines.count = conv.across.out - h;
        if (lines.count > conv.lines) lines.count = conv.lines;
        if constexpr (kBand) {
          orch_packed_depthwise_strips_band(&lines);
        } else {
          orch_packed_depthwise_strips(&lines);
        }
        first += conv.lines * conv.across.stride;
      }
      v += pixels;
    }
    image += conv.across.in * conv.along.in * conv.channels;
    y += conv.across.out * conv.along.out * conv.channels;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_depthwise_conv2d.out: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedDepthwiseStrips; `scratch` holds zeros, padding and a
// strip of 16 channels. The build has checked everything.
void packed_depthwise_strips(const PreparedCall& prepared) {
  run<false>(static_cast<const PackedCall&>(prepared));
}
ORCH_PACKED_FORMS(PackedDepthwiseStrips, packed_depthwise_strips,
                  limited_packed_depthwise_strips)

// Prepared: the same for bands with an odd number of pixels.
void packed_depthwise_strips_band(const PreparedCall& prepared) {
  run<true>(static_cast<const PackedCall&>(prepared));
}
ORCH_LIMITED_BAND(PackedDepthwiseStrips, packed_depthwise_strips_band,
                  limited_packed_depthwise_strips_band)

}  // namespace orch::cortex_m

#endif
