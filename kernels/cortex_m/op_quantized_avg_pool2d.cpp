#include "orch_selected/op_quantized_avg_pool2d.h"

#include <stddef.h>
#include <string.h>

#include "assembly.h"
#include "image.h"
#include "orch/kernel.h"
#include "pool.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/scratch.h"
#if ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#elif ORCH_ISA == ORCH_ISA_MVE
#include "mve.h"
#endif

namespace orch::cortex_m {
namespace {

/// What divides sums of windows. Loops for a core take those of up to `most`
/// taps, whose sum has 16 bits: what is added makes it positive and rounds, the
/// upper half of a product with the factor divides, and the remainder shows
/// ties. Known to the assembly.
template <bool kFloats>
struct Division {
  Division(const PoolTaps& given, const ItemScale& items) : taps(given) {
    if constexpr (kFloats) {
      zero_point = items.zero_point;
      scale = items.scale;
      inverse = 1.0F / scale;
      // Floats are less than half a step beside the average of so few if none
      // of their exponents nears its limits.
      const bool usual = scale > 0x1p-64F && scale < 0x1p64F &&
                         zero_point == static_cast<int8_t>(zero_point);
      const bool able = ORCH_ISA != ORCH_ISA_MVE || ORCH_FLOAT_VECTORS != 0;
      if (!usual || !able) most = 0;
    }
  }

  /// For vectors, one tap counts twice.
  void set(const PoolWindow& given) {
    window = given;
    count = given.rows * given.columns;
    if (ORCH_ISA == ORCH_ISA_SCALAR) return;
    const int32_t items = count == 1 ? 2 : count;
    constexpr uint32_t kTop =
        ORCH_ISA == ORCH_ISA_DSP ? UINT32_MAX : UINT16_MAX;
    rows = given.rows;
    columns = items / rows;
    column_step = count == 1 ? 0 : taps.column_step;
    row_step = taps.row_step;
    added = static_cast<uint32_t>(128 * items + items / 2) * 0x10001U;
    factor = kTop / static_cast<uint32_t>(items) + 1;
    divisor = -items;
    tie = items % 2 == 0 ? 0 : INT16_MAX;
    if constexpr (kFloats && ORCH_ISA == ORCH_ISA_MVE) {
      negative = static_cast<float>(-items);
      share = -1.0F / negative;
      at_once = tie == 0 && items <= 8 ? 1 : 0;
    }
  }

  /// Calls fn(item) for the taps, the first of which is at `x`.
  template <typename Fn>
  ORCH_ALWAYS_INLINE void for_each(const int8_t* x, Fn&& fn) const {
    for_each_tap(taps, window, x, fn);
  }

  int32_t rows;
  int32_t columns;
  int32_t column_step;
  int32_t row_step;
  uint32_t added;   // to two sums
  uint32_t factor;  // 2^32 or, for vectors, 2^16 / count, rounded up
  int32_t divisor;  // -count
  int32_t tie;      // what is left of sums in the middle; else never left
  int32_t zero_point;
  float scale;
  float inverse;    // 1 / scale
  float share;      // 1 / count
  float negative;   // -count
  int32_t at_once;  // 1 if most vectors have ties, so that all need floats
  int32_t most = 256;
  int32_t count;
  PoolWindow window = {};
  PoolTaps taps;
};

using Known = Division<true>;
static_assert(offsetof(Known, added) == 16 && offsetof(Known, factor) == 20 &&
                  offsetof(Known, tie) == 28 &&
                  offsetof(Known, zero_point) == 32 &&
                  offsetof(Known, inverse) == 40 &&
                  offsetof(Known, share) == 44 &&
                  offsetof(Known, at_once) == 52,
              "the assembly knows where things are");

/// The average as floats have it, which PyTorch's quantized graphs add and
/// divide. Floats of the size of the last sum have steps of 1, and a tie is
/// rounded to even: the bits count.
ORCH_HOT int32_t nearest_of_floats(const Division<true>& by, const int8_t* x) {
  const uint32_t zero_point = static_cast<uint32_t>(by.zero_point);
  float total = 0;
  by.for_each(x, [&](const int8_t* item) {
    const uint32_t steps = static_cast<uint32_t>(*item) - zero_point;
    total += static_cast<float>(static_cast<int32_t>(steps)) * by.scale;
  });
  const float whole =
      total / static_cast<float>(by.count) * by.inverse + 0x1.8p23F;
  uint32_t bits;
  memcpy(&bits, &whole, sizeof bits);
  return static_cast<int32_t>(bits - 0x4B400000 + zero_point);
}

/// The average of a window whose first item is `x`, rounded to the nearest
/// step. Ties go away from zero, as those of CMSIS-NN; with kFloats where
/// floats do, which may lie a bit beside the middle.
template <bool kFloats>
int8_t average_of(const Division<kFloats>& by, int32_t sum, const int8_t* x) {
  const int32_t half = by.count / 2;
  const int32_t farther = sum > 0 ? sum + half : sum - half;
  int32_t step = farther / by.count;
  if constexpr (kFloats) {
    if (by.count % 2 == 0 && step * by.count == farther) {
      step = nearest_of_floats(by, x);
    }
  }
  return static_cast<int8_t>(step);
}

/// The sum of a channel of a window, which is at `x`.
template <bool kFloats>
ORCH_HOT int32_t sum_one(const Division<kFloats>& by, const int8_t* x) {
  int32_t sum = 0;
  by.for_each(x, [&](const int8_t* item) { sum += *item; });
  return sum;
}

#if ORCH_ISA == ORCH_ISA_MVE
// Averages of a window's channels, the first of which is at `x`: eight at once,
// with sums of 16 bits. The quotient may be too large by one, which the
// remainder tells. Floats are divided as Markstein does: a quotient by the
// reciprocal, its remainder, and the quotient of that, which rounds once. The
// words are vcvtb.f32.f16 q3, q2 and vcvtt.f32.f16 q2, q2: binutils 2.40
// encodes other registers.
using AverageFn = void(const void* by, const int8_t* x, int32_t channels,
                       int8_t* y);
extern "C" AverageFn orch_average;
extern "C" AverageFn orch_average_floats;
asm(R"(
  .macro orch_taps
  ldr r4, [r0]
  mov r9, r1
1:
  mov r7, r9
  add r9, r9, r8
  dls lr, r5
2:
  vpst
  .endm
  .macro orch_taps_end
  le lr, 2b
  subs r4, #1
  bne 1b
  .endm
  .macro orch_average_channels floats
  ldrd r5, r6, [r0, #4]
  ldr r8, [r0, #12]
  ldrd r10, r11, [r0, #32]
3:
  vctp.16 r2
  ldr r4, [r0, #16]
  .if \floats
  ldr r7, [r0, #52]
  cmp r7, #0
  bne 4f
  .endif
  vdup.16 q0, r4
  orch_taps
  vldrbt.s16 q1, [r7]
  add r7, r7, r6
  vadd.i16 q0, q0, q1
  orch_taps_end
  ldrd r4, r7, [r0, #20]
  vdup.16 q1, r4
  vmulh.u16 q1, q0, q1
  vmla.s16 q0, q1, r7
  vshr.s16 q2, q0, #15
  vadd.i16 q1, q1, q2
  ldr r4, [r0, #28]
  mov r12, #128
  .if \floats
  vcmp.i16 eq, q0, r4
  vmrs r7, p0
  cmp r7, #0
  beq 5f
4:
  vctp.16 r2
  vmov.i32 q0, #0
  vmov.i32 q1, #0
  orch_taps
  vldrbt.s16 q2, [r7]
  add r7, r7, r6
  vsub.i16 q2, q2, r10
  vcvt.f16.s16 q2, q2
  .inst.w 0xfe3f6e05
  .inst.w 0xfe3f5e05
  vmul.f32 q3, q3, r11
  vmul.f32 q2, q2, r11
  vadd.f32 q0, q0, q3
  vadd.f32 q1, q1, q2
  orch_taps_end
  ldrd r4, r7, [r0, #44]
  ldr r9, [r0, #40]
  vmul.f32 q2, q0, r4
  vmul.f32 q3, q1, r4
  vfma.f32 q0, q2, r7
  vfma.f32 q1, q3, r7
  vfma.f32 q2, q0, r4
  vfma.f32 q3, q1, r4
  vmul.f32 q2, q2, r9
  vmul.f32 q3, q3, r9
  vcvtn.s32.f32 q1, q2
  vcvtn.s32.f32 q3, q3
  vmovnt.i32 q1, q3
  rsb r12, r10, #0
  .else
  mov r7, #1
  vptt.i16 eq, q0, r4
  vcmpt.s16 le, q1, r12
  vsubt.i16 q1, q1, r7
  .endif
5:
  vsub.i16 q1, q1, r12
  vctp.16 r2
  vpst
  vstrbt.16 q1, [r3], #8
  add r1, r1, #8
  subs r2, #8
  bgt 3b
  .endm
)" ORCH_FUNCTION("orch_average") ORCH_SAVE
    "  orch_average_channels 0\n" ORCH_RETURN ORCH_END("orch_average")
#if ORCH_FLOAT_VECTORS
        ORCH_FUNCTION("orch_average_floats") ORCH_SAVE
    "  orch_average_channels 1\n" ORCH_RETURN ORCH_END("orch_average_floats")
#endif
        "  .purgem orch_taps; .purgem orch_taps_end\n"
        "  .purgem orch_average_channels\n");

/// Sums of four channels of a window, the first of which is at `x`.
template <bool kFloats>
ORCH_HOT void sum_four(const Division<kFloats>& by, const int8_t* x,
                       int32_t* sums) {
  int32x4_t sum = vdupq_n_s32(0);
  by.for_each(
      x, [&](const int8_t* item) { sum = vaddq_s32(sum, vldrbq_s32(item)); });
  vstrwq_s32(sums, sum);
}
#elif ORCH_ISA == ORCH_ISA_DSP
/// Averages of four channels at a time, the first of which is at `x`.
template <bool kFloats>
ORCH_HOT void average_fours(const Division<kFloats>& by, const int8_t* x,
                            int32_t fours, int8_t* y) {
  const uint32_t factor = by.factor;
  [[maybe_unused]] const uint32_t count = static_cast<uint32_t>(by.count);
  [[maybe_unused]] const uint32_t tie = static_cast<uint32_t>(by.tie);
  // What is below was negative: ties are made smaller.
  [[maybe_unused]] const uint32_t negative =
      by.tie == 0 ? static_cast<uint16_t>(by.added) : 0;
  for (; fours > 0; --fours) {
    Pair evens = static_cast<Pair>(by.added);
    Pair odds = evens;
    by.for_each(x, [&](const int8_t* item) {
      const uint32_t word = load4(item);
      evens = even(evens, word);
      odds = odd(odds, word);
    });
    const uint32_t sums[4] = {
        static_cast<uint16_t>(evens), static_cast<uint16_t>(odds),
        static_cast<uint32_t>(evens) >> 16, static_cast<uint32_t>(odds) >> 16};
    unrolled<4>([&](auto c) {
      uint32_t sum = sums[c];
      if constexpr (!kFloats) sum -= sum < negative ? 1 : 0;
      const uint32_t step = static_cast<uint32_t>(uint64_t{sum} * factor >> 32);
      y[c] = static_cast<int8_t>(step - 128);
      if constexpr (kFloats) {
        if (sum - step * count == tie) {
          y[c] = static_cast<int8_t>(nearest_of_floats(by, x + c));
        }
      }
    });
    x += 4;
    y += 4;
  }
}
#endif

/// The averages of all channels of a window, from `y` on; returns their end.
template <bool kFloats>
ORCH_ALWAYS_INLINE int8_t* average_window(Division<kFloats>& by,
                                          const PoolWindow& window,
                                          const int8_t* x, int8_t* y) {
  x += window.first;
  if (by.window.rows != window.rows || by.window.columns != window.columns) {
    by.set(window);
  }
  int32_t left = by.taps.channels;
#if ORCH_ISA == ORCH_ISA_MVE
  if (by.count <= by.most) {
    (kFloats && ORCH_FLOAT_VECTORS != 0 ? orch_average_floats : orch_average)(
        &by, x, left, y);
    return y + left;
  }
  for (; left >= 4; left -= 4) {
    int32_t sums[4];
    sum_four(by, x, sums);
    for (const int32_t sum : sums) *y++ = average_of(by, sum, x++);
  }
#elif ORCH_ISA == ORCH_ISA_DSP
  if (left >= 4 && by.count > 1 && by.count <= by.most) {
    average_fours(by, x, left / 4, y);
    x += left & ~3;
    y += left & ~3;
    left &= 3;
  }
#endif
  for (; left > 0; --left) {
    *y++ = average_of(by, sum_one(by, x), x);
    ++x;
  }
  return y;
}

template <bool kFloats>
void average_windows(const PreparedCall& prepared) {
  const auto& call = static_cast<const AveragePoolCall&>(prepared);
  Division<kFloats> by(call.pool.taps, call.items);
  const int8_t* const x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  for_each_window(call.pool, [&](const PoolWindow& window) {
    y = average_window(by, window, x, y);
  });
}

template <bool kFloats>
void average_images(const PreparedCall& prepared) {
  const auto& call = static_cast<const AverageImageCall&>(prepared);
  Division<kFloats> by(call.taps, call.items);
  const int8_t* const x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  for (int32_t n = 0; n < call.batch; ++n) {
    const int32_t first = n * call.pixels * call.taps.channels;
    y = average_window(by, {first, 1, call.pixels}, x, y);
  }
}

/// Reads the scale, multiplier * 2^(shift - 31), as CMSIS-NN has scales. Of
/// numbers beyond 32 bits, which are no scales, the upper bits are dropped.
[[maybe_unused]] ItemScale read_items(const Args& args) {
  ItemScale items;
  items.zero_point = static_cast<int32_t>(args.integer(5));
  const uint32_t exponent = static_cast<uint32_t>(args.integer(7)) + 127 - 31;
  const uint32_t bits = exponent << 23;
  memcpy(&items.scale, &bits, sizeof bits);
  items.scale *= static_cast<float>(static_cast<int32_t>(args.integer(6)));
  return items;
}

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  const Tensor& scratch = args.tensor(8);
  Tensor& out = args.tensor(9);

  AveragePoolCall call;
  ORCH_TRY(prepare_pool(args, layout, false, args.boolean(4), call.pool, out));
  ORCH_TRY_DATA(check_scratch(scratch, 0));
  call.input = input.memory;
  call.out = out.memory;
  constexpr DtypeSet kSelected =
      selected::cortex_m_quantized_avg_pool2d_out |
      selected::cortex_m_quantized_avg_pool2d_nhwc_out;
  constexpr DtypeSet kTaken = dtype_set(ScalarType::Byte, ScalarType::Char);
  return switch_dtype<(kSelected & kTaken).bits>(scratch.dtype, [&](auto type) {
    constexpr bool kFloats = kIsSame<typename decltype(type)::type, int8_t>;
    if constexpr (kFloats) call.items = read_items(args);
    average_windows<kFloats>(call);
    return Error::Ok;
  });
}

}  // namespace

// cortex_m::quantized_avg_pool2d.out(Tensor input, int[] kernel_size,
//   int[] stride, int[] padding, bool ceil_mode, int zero_point,
//   int multiplier, int shift, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// Padding does not count. Input and output have one scale and zero point. They
// matter if the scratch tensor, which is not used, is Char: floats decide ties.
Error quantized_avg_pool2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_avg_pool2d_nhwc.out: the same arguments; images have
//   sizes [N, H, W, C].
Error quantized_avg_pool2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

// Prepared: windows or whole images; ties away from zero or as of floats.
void quantized_avg_pool2d(const PreparedCall& call) {
  average_windows<false>(call);
}

void quantized_avg_pool2d_floats(const PreparedCall& call) {
  average_windows<true>(call);
}

void quantized_avg_image(const PreparedCall& call) {
  average_images<false>(call);
}

void quantized_avg_image_floats(const PreparedCall& call) {
  average_images<true>(call);
}

}  // namespace orch::cortex_m
