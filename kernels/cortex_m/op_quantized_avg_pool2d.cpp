#include "orch_selected/op_quantized_avg_pool2d.h"

#include <stddef.h>
#include <string.h>

#include "assembly.h"
#include "image.h"
#include "orch/kernel.h"
#include "pool.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/round.h"
#include "util/scratch.h"
#if ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#endif

namespace orch::cortex_m {
namespace {

/// Averages, rounded to the nearest step; ties go away from zero, as those of
/// CMSIS-NN.
///
/// With kFloats ties are rounded as in PyTorch's quantized graphs: what items
/// stand for is added and divided as floats, which may lie a bit beside the
/// middle of two steps, and is else rounded to even.
template <bool kFloats>
struct Averages {
  /// Of a window whose first item is `x`.
  int8_t of(int32_t sum, const PoolWindow& window, const int8_t* x) const {
    const int32_t count = window.rows * window.columns;
    if constexpr (!kFloats) {
      const int32_t half = count / 2;
      return static_cast<int8_t>((sum > 0 ? sum + half : sum - half) / count);
    } else {
      const int32_t size = (sum < 0 ? -sum : sum) + count / 2;
      const int32_t nearest = size / count;
      // Half an odd count is cut: such sums lie beside the middle.
      const bool middle = nearest * count == size && count % 2 == 0;
      const int32_t toward = middle && is_toward_zero(sum, window, x) ? 1 : 0;
      const int32_t steps = nearest - toward;
      return static_cast<int8_t>(sum < 0 ? -steps : steps);
    }
  }

  /// Of the two steps around an average, whether floats choose the one nearer
  /// to 0.
  __attribute__((noinline)) bool is_toward_zero(int32_t sum,
                                                const PoolWindow& window,
                                                const int8_t* x) const {
    const int32_t count = window.rows * window.columns;
    float total = 0;
    for (int32_t i = 0; i < window.rows; ++i) {
      for (int32_t j = 0; j < window.columns; ++j) {
        total += of_item(x[j * taps.column_step]);
      }
      x += taps.row_step;
    }
    const float steps =
        total / static_cast<float>(count) * (1.0F / items.scale);
    return round_even(steps) * items.scale == of_item(sum / count);
  }

  float of_item(int32_t item) const {
    const uint32_t steps =
        static_cast<uint32_t>(item) - static_cast<uint32_t>(items.zero_point);
    return static_cast<float>(static_cast<int32_t>(steps)) * items.scale;
  }

  const PoolTaps& taps;
  const ItemScale& items;  // with floats
};

#if ORCH_ISA == ORCH_ISA_MVE
/// Items of a window of which vectors divide the sum.
constexpr int32_t kMostTaps = 2000;

/// The taps of a window, whose sums are divided by twice their count: what is
/// added makes them positive and rounds, the upper half of a product with a
/// factor divides. Known to the assembly.
struct Division {
  Division(const PoolTaps& taps, const PoolWindow& window, int32_t count)
      : rows(window.rows),
        columns(window.columns),
        column_step(taps.column_step),
        row_step(taps.row_step),
        added(257 * count),
        factor(UINT32_MAX / static_cast<uint32_t>(2 * count) + 1) {}

  int32_t rows;
  int32_t columns;
  int32_t column_step;
  int32_t row_step;
  int32_t added;
  uint32_t factor;  // 2^32 / (2 * count), rounded up
  int32_t sums[4];
};

static_assert(offsetof(Division, columns) == 4 &&
                  offsetof(Division, column_step) == 8 &&
                  offsetof(Division, row_step) == 12 &&
                  offsetof(Division, added) == 16 &&
                  offsetof(Division, factor) == 20 &&
                  offsetof(Division, sums) == 24,
              "the assembly knows where things are");

// Four channels of a window, or the `count` that are left; the first one is at
// `x`. Ties go away from zero: those of negative sums are made smaller before.
// Leaves sums in `by`.
extern "C" void orch_average_four(Division* by, const int8_t* x, int32_t count,
                                  int8_t* y);
asm(ORCH_FUNCTION("orch_average_four") ORCH_SAVE R"(
  ldm r0, {r4, r5, r6, r8}
  vmov.i32 q0, #0
  vctp.32 r2
1:
  mov r7, r1
  dls lr, r5
2:
  vpst
  vldrbt.s32 q1, [r7]
  add r7, r7, r6
  vadd.i32 q0, q0, q1
  le lr, 2b
  add r1, r1, r8
  subs r4, r4, #1
  bne 1b
  vstrw.32 q0, [r0, #24]
  ldrd r7, lr, [r0, #16]
  vshr.s32 q1, q0, #31
  vadd.i32 q1, q1, q0
  vadd.i32 q1, q1, q0
  vadd.i32 q1, q1, r7
  vdup.32 q2, lr
  vmulh.u32 q1, q1, q2
  mov lr, #128
  vsub.i32 q1, q1, lr
  vpst
  vstrbt.32 q1, [r3]
)" ORCH_RETURN ORCH_END("orch_average_four"));

/// Which of four sums lie in the middle of two steps: four bits each.
ORCH_HOT uint32_t ties_of(const Division& by, int32_t count) {
  uint32_t ties;
  asm("vldrw.32 q0, [%[sums]]\n"
      "vdup.32 q2, %[factor]\n"
      "vadd.i32 q1, q0, %[added]\n"
      "vadd.i32 q1, q1, q0\n"
      "vmulh.u32 q2, q1, q2\n"
      "vmla.s32 q1, q2, %[divisor]\n"
      "vcmp.i32 eq, q1, zr\n"
      "vmrs %[ties], p0\n"
      : [ties] "=r"(ties)
      : [sums] "r"(by.sums), [added] "r"(by.added), [factor] "r"(by.factor),
        [divisor] "r"(-2 * count), "m"(by)
      : "q0", "q1", "q2", "cc");
  return ties;
}
#else
/// The sum of a channel of a window, which is at `x`.
ORCH_ALWAYS_INLINE int32_t sum_one(const PoolTaps& taps,
                                   const PoolWindow& window, const int8_t* x) {
  int32_t sum = 0;
  for_each_tap(taps, window, x, [&](const int8_t* item) { sum += *item; });
  return sum;
}

#if ORCH_ISA == ORCH_ISA_DSP
/// Items of a window whose sum has 16 bits.
constexpr int32_t kMostTaps = 256;

/// Sums of four channels of a window of at most kMostTaps, the first of which
/// is at `x`.
ORCH_HOT void sum_four(const PoolTaps& taps, const PoolWindow& window,
                       const int8_t* x, int32_t* sums) {
  Pair evens = 0;
  Pair odds = 0;
  for_each_tap(taps, window, x, [&](const int8_t* item) {
    const uint32_t word = load4(item);
    evens = even(evens, word);
    odds = odd(odds, word);
  });
  sums[0] = static_cast<int16_t>(evens);
  sums[1] = static_cast<int16_t>(odds);
  sums[2] = evens >> 16;
  sums[3] = odds >> 16;
}
#endif
#endif

/// The averages of all channels of a window, from `y` on; returns their end.
template <bool kFloats>
ORCH_ALWAYS_INLINE int8_t* average_window(const Averages<kFloats>& averages,
                                          const PoolWindow& window,
                                          const int8_t* x, int8_t* y) {
  x += window.first;
  int32_t left = averages.taps.channels;
#if ORCH_ISA == ORCH_ISA_MVE
  const int32_t items = window.rows * window.columns;
  Division by(averages.taps, window, items);
  for (; left > 0; left -= 4) {
    const int32_t count = left < 4 ? left : 4;
    orch_average_four(&by, x, count, y);
    uint32_t others = items > kMostTaps ? UINT32_MAX : 0;
    if (kFloats && others == 0) others = ties_of(by, items);
    for (int32_t i = 0; others != 0 && i < count; ++i) {
      if ((others >> (4 * i) & 1) != 0) {
        y[i] = averages.of(by.sums[i], window, x + i);
      }
    }
    x += count;
    y += count;
  }
#else
#if ORCH_ISA == ORCH_ISA_DSP
  if (left >= 4 && window.rows * window.columns <= kMostTaps) {
    for (; left >= 4; left -= 4) {
      int32_t sums[4];
      sum_four(averages.taps, window, x, sums);
      for (const int32_t sum : sums) *y++ = averages.of(sum, window, x++);
    }
  }
#endif
  for (; left > 0; --left) {
    *y++ = averages.of(sum_one(averages.taps, window, x), window, x);
    ++x;
  }
#endif
  return y;
}

template <bool kFloats>
void average_windows(const PreparedCall& prepared) {
  const auto& call = static_cast<const AveragePoolCall&>(prepared);
  const Averages<kFloats> averages = {call.pool.taps, call.items};
  const int8_t* const x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  for_each_window(call.pool, [&](const PoolWindow& window) {
    y = average_window(averages, window, x, y);
  });
}

template <bool kFloats>
void average_images(const PreparedCall& prepared) {
  const auto& call = static_cast<const AverageImageCall&>(prepared);
  const Averages<kFloats> averages = {call.taps, call.items};
  const int8_t* const x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  for (int32_t n = 0; n < call.batch; ++n) {
    const int32_t first = n * call.pixels * call.taps.channels;
    y = average_window(averages, {first, 1, call.pixels}, x, y);
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
