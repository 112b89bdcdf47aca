#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed.h"
#include "packed_dsp.h"
#include "packed_gather.h"
#include "packed_limits.h"
#include "tile_dsp.h"
#include "unroll.h"
#include "util/check.h"

namespace orch::cortex_m {
namespace {

/// What `orch_packed_pixels` takes besides pointers. Known to the assembly.
struct PairLoop {
  int32_t weight_bytes;  // of a pair of channels
  int32_t all_bytes;     // of all pairs
  int32_t ties;          // as in PackedPairs
  int32_t y_step;        // from a pixel to the next one
};

// Sums start with the first step where speed counts, else before it. Then the
// first round of the loop begins where as many steps are left as it has to do.
#ifdef __OPTIMIZE_SIZE__
#define ORCH_STEPS "2"
#define ORCH_SKIPPED_BYTES "64"
#define ORCH_STEPS_BEFORE "0"
#define ORCH_START   \
  "  mov r7, r9\n"   \
  "  mov r8, r9\n"   \
  "  mov r10, r12\n" \
  "  mov r11, r12\n" \
  "  ldr pc, [sp, #20]\n"
#else
#define ORCH_STEPS "8"
#define ORCH_SKIPPED_BYTES "448"
#define ORCH_STEPS_BEFORE "1"
#define ORCH_START                    \
  "  ldrd r5, r6, [r1], #8\n"         \
  "  orch_pair_of_taps r5, r9, r12\n" \
  "  orch_pair_of_taps r6\n"          \
  "  cmp r1, lr\n"                    \
  "  it ne\n"                         \
  "  ldrne pc, [sp, #20]\n"           \
  "  b 5f\n"
#endif

// All output channels of three pixels. r0: `x`, inputs as pairs; r1: `w`, pairs
// of channels; r2: `y`; r3: `loop`. What belongs to the last pixel is stored
// first: with a step of 0 the first one stays.
//
// A step takes four taps and is of 64 bytes.
extern "C" void orch_packed_pixels(const int32_t* x, const uint8_t* w,
                                   int8_t* y, const PairLoop* loop);
asm(R"(
  .section .text.orch_packed_pixels, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_packed_pixels
  .hidden orch_packed_pixels
  .type orch_packed_pixels, %function
  .thumb_func
  .macro orch_products sum0, sum1, sum2, w, start
  .ifb \start
  smlad \sum0, r2, \w, \sum0
  smlad \sum1, r3, \w, \sum1
  smlad \sum2, r4, \w, \sum2
  .else
  smlad \sum0, r2, \w, \start
  smlad \sum1, r3, \w, \start
  smlad \sum2, r4, \w, \start
  .endif
  .endm
  .macro orch_pair_of_taps w, start, start_a
  ldm r0!, {r2, r3, r4}
  orch_products r7, r8, r9, \w, \start
  sxtb16 \w, \w
  orch_products r10, r11, r12, \w, \start_a
  .endm
  @ A number is less than what was added to its product if it was negative.
  .macro orch_ties_down sum, ties
  cmp \sum, r3
  it lt
  sublt \sum, \sum, \ties
  .endm
  .macro orch_store_three first, second, third
  add lr, r0, r4, lsr #8
  strb \third, [lr, r6, lsl #1]
  strb \second, [lr, r6]
  strb \first, [lr]
  .endm
orch_packed_pixels:
  push {r4-r11, lr}
  sub sp, #28
  ldm r3, {r4, r5, r6, r7}
  add r5, r1
  strd r0, r4, [sp]
  strd r2, r6, [sp, #8]
  str r7, [sp, #16]
  rsb r4, #8 * )" ORCH_STEPS_BEFORE R"(
  lsl r4, #3
  and r4, #)" ORCH_SKIPPED_BYTES R"(
  adr.w r6, 2f
  add r4, r6
  add r4, #1
  strd r4, r5, [sp, #20]
1:
  ldrd r9, r12, [r1], #8
  ldrd r0, lr, [sp]
  add lr, r1
)" ORCH_START R"(
  .balign 4
2:
  .rept )" ORCH_STEPS R"(
  ldrd r5, r6, [r1], #8
  orch_pair_of_taps r5
  orch_pair_of_taps r6
  .endr
  cmp r1, lr
  bne 2b
5:
  add r0, sp, #8
  ldm r0, {r0, r5, r6}
  ldm r1!, {r2, r3, r4}
  sub r7, r10
  sub r8, r11
  sub r9, r12
  lsl r10, r4
  lsl r11, r4
  lsl r12, r4
  smmla r10, r10, r2, r3
  smmla r11, r11, r2, r3
  smmla r12, r12, r2, r3
  cbz r5, 3f
  lsl lr, r5, r4
  orch_ties_down r10, "lr, lsr #1"
  orch_ties_down r11, "lr, lsr #1"
  orch_ties_down r12, "lr, lsr #1"
3:
  ssat r10, #8, r10, asr #13
  ssat r11, #8, r11, asr #13
  ssat r12, #8, r12, asr #13
  orch_store_three r10, r11, r12
  ldm r1!, {r2, r3, r4}
  smmla r7, r7, r2, r3
  smmla r8, r8, r2, r3
  smmla r9, r9, r2, r3
  cbz r5, 4f
  orch_ties_down r7, #128
  orch_ties_down r8, #128
  orch_ties_down r9, #128
4:
  asr r7, r4
  asr r8, r4
  asr r9, r4
  ssat r7, #8, r7
  ssat r8, #8, r8
  ssat r9, #8, r9
  orch_store_three r7, r8, r9
  ldr r2, [sp, #24]
  cmp r1, r2
  bne 1b
  add sp, #28
  pop {r4-r11, pc}
  .size orch_packed_pixels, . - orch_packed_pixels
  .purgem orch_products
  .purgem orch_pair_of_taps
  .purgem orch_ties_down
  .purgem orch_store_three
  .text
)");

/// Pixels that are computed at once.
constexpr int32_t kPixels = 3;

/// Pairs of the inputs of a pixel. They lie in `rows` pieces; if the items of
/// a piece are no whole words, the last word begins earlier.
ORCH_HOT void widen_pixel(const int8_t* from, int32_t items, int32_t rows,
                          int32_t step, Pair* to) {
  const int32_t skip = step - items;
  for (; rows > 0; --rows) {
    const int8_t* const last = from + items - 4;
    for (;;) {
      const uint32_t word = load4(from);
      from += 4;
      to[0] = even(word);
      to[kPixels] = odd(word);
      to += 2 * kPixels;
      const int32_t over = from - last;
      if (over <= 0) continue;
      if (over == 4) break;
      from -= over;
    }
    from += skip;
  }
}

// The same for three pixels, one of each pointer.
extern "C" void orch_widen_pixels(const int8_t* const* pixels, int32_t items,
                                  int32_t rows, int32_t step, Pair* to);
asm(R"(
  .section .text.orch_widen_pixels, "ax", %progbits
  .syntax unified
  .thumb
  .balign 4
  .globl orch_widen_pixels
  .hidden orch_widen_pixels
  .type orch_widen_pixels, %function
  .thumb_func
orch_widen_pixels:
  push {r4-r11, lr}
  ldm r0, {r10, r11, r12}
  ldr lr, [sp, #36]
  sub r3, r1
1:
  add r0, r10, r1
  subs r0, #4
2:
  ldr r4, [r10], #4
  ldr r5, [r11], #4
  ldr r6, [r12], #4
  sxtb16 r7, r4, ror #8
  sxtb16 r8, r5, ror #8
  sxtb16 r9, r6, ror #8
  sxtb16 r4, r4
  sxtb16 r5, r5
  sxtb16 r6, r6
  stm lr!, {r4-r9}
  cmp r10, r0
  bls 2b
  sub r4, r10, r0
  cmp r4, #4
  beq 3f
  sub r10, r4
  sub r11, r4
  sub r12, r4
  b 2b
3:
  add r10, r3
  add r11, r3
  add r12, r3
  subs r2, #1
  bne 1b
  pop {r4-r11, pc}
  .size orch_widen_pixels, . - orch_widen_pixels
  .text
)");

ORCH_HOT void run(const PackedCall& prepared) {
  const int8_t* image = static_cast<const int8_t*>(prepared.input);
  uint8_t* scratch = static_cast<uint8_t*>(prepared.scratch);
  int8_t* y = static_cast<int8_t*>(prepared.out);
  const PackedPairs& call = *static_cast<const PackedPairs*>(prepared.header);
  const PackedConvolution& conv = call.conv;
  PairLoop loop = {call.weight_bytes, call.all_bytes, call.ties, 0};
  Pair* const pairs = reinterpret_cast<Pair*>(scratch);
  int8_t* const patch = reinterpret_cast<int8_t*>(
      scratch + 2 * static_cast<uint32_t>(kPixels * conv.depth));
  const int32_t line = conv.columns.in * conv.in_channels;
  int32_t left = conv.batch * conv.rows.out * conv.columns.out;
  int32_t count = left < kPixels ? 1 : kPixels;
  int32_t filled = 0;
  const int8_t* inside[kPixels] = {};  // those not yet widened
  const int32_t step = conv.rows.dilation * line;
  const int32_t words = step | call.patch_items;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < conv.rows.out; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      const bool in_rows = rows.count == conv.rows.kernel;
      int32_t column = -conv.columns.padding;
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const int32_t stride = conv.columns.stride;
        if (kFavourSpeed && filled == 0 && count == kPixels && in_rows &&
            v + 2 < conv.columns.out &&
            static_cast<uint32_t>(column) < call.inner_columns &&
            static_cast<uint32_t>(column + 2 * stride) < call.inner_columns) {
          inside[0] = image + rows.in * line + column * conv.in_channels;
          inside[1] = inside[0] + stride * conv.in_channels;
          inside[2] = inside[1] + stride * conv.in_channels;
          v += 2;
          column += 3 * stride;
        } else {
          // Of two pixels at the end the last one is first, so that the third
          // one is the one before them, whose inputs are still there.
          const int32_t slot = count == 2 ? 1 - filled : filled;
          if (in_rows && static_cast<uint32_t>(column) < call.inner_columns) {
            inside[slot] = image + rows.in * line + column * conv.in_channels;
          } else {
            gather(conv, image, rows, taps_at(conv.columns, v), patch);
            widen_pixel(patch, call.patch_items, call.patch_rows,
                        call.patch_items, pairs + slot);
          }
          column += stride;
          if (++filled != count) continue;
          filled = 0;
        }
        if (inside[0] != nullptr && inside[1] != nullptr &&
            inside[2] != nullptr && in_words(inside[0], words) &&
            in_words(inside[1], 0) && in_words(inside[2], 0)) {
          orch_widen_pixels(inside, call.patch_items, call.patch_rows, step,
                            pairs);
        } else {
          for (int32_t i = 0; i < kPixels; ++i) {
            if (inside[i] == nullptr) continue;
            widen_pixel(inside[i], call.patch_items, call.patch_rows, step,
                        pairs + i);
          }
        }
        for (const int8_t*& pixel : inside) pixel = nullptr;
        int8_t* first = y;
        loop.y_step = conv.out_channels;
        if (count == 2) {
          first += conv.out_channels;
          loop.y_step = -conv.out_channels;
        } else if (count == 1) {
          loop.y_step = 0;
        }
        orch_packed_pixels(pairs, static_cast<const uint8_t*>(prepared.weights),
                           first, &loop);
        y += count * conv.out_channels;
        left -= count;
        if (left < count) count = count == kPixels ? left : 1;
      }
    }
    image += conv.rows.in * line;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPairs; `scratch` holds the pairs of three pixels, then
// the inputs of one if they do not lie side by side. The build has checked
// everything.
void packed_conv2d(const PreparedCall& call) {
  run(static_cast<const PackedCall&>(call));
}

Error packed_conv2d_out(const Args& args) {
  return run_packed(packed_conv2d, args);
}

// The same with limits: `int low, int high` in front of `out`.
void limited_packed_conv2d(const PreparedCall& call) {
  run_limited<PackedPairs>(packed_conv2d, call);
}

Error limited_packed_conv2d_out(const Args& args) {
  return run_limited<PackedPairs>(packed_conv2d, args);
}

}  // namespace orch::cortex_m

#endif
