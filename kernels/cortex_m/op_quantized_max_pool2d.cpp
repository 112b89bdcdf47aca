#include <stddef.h>
#include <string.h>

#include "assembly.h"
#include "extreme.h"
#include "image.h"
#include "orch/kernel.h"
#include "pool.h"

namespace orch::cortex_m {
namespace {

// Largest items of sixteen channels, or of four, at once.
#if ORCH_ISA == ORCH_ISA_MVE
constexpr int32_t kChannels = 16;

/// A window, and limits of items. Known to the assembly.
struct Largest {
  int32_t rows;
  int32_t columns;
  int32_t column_step;
  int32_t row_step;
  Range range;
};

static_assert(offsetof(Largest, columns) == 4 &&
                  offsetof(Largest, column_step) == 8 &&
                  offsetof(Largest, row_step) == 12 &&
                  offsetof(Largest, range) + offsetof(Range, low) == 16 &&
                  offsetof(Largest, range) + offsetof(Range, high) == 20,
              "the assembly knows where things are");

extern "C" void orch_largest_of(const Largest* of, const int8_t* x,
                                int32_t channels, int8_t* y);
asm(ORCH_FUNCTION("orch_largest_of") ORCH_SAVE R"(
  ldm r0, {r4, r5, r6, r8, r9, r10}
  vdup.8 q0, r9
  vctp.8 r2
1:
  mov r11, r1
  dls lr, r5
2:
  vpst
  vldrbt.8 q1, [r11]
  add r11, r11, r6
  vmax.s8 q0, q0, q1
  le lr, 2b
  add r1, r1, r8
  subs r4, r4, #1
  bne 1b
  vdup.8 q1, r10
  vmin.s8 q0, q0, q1
  vpst
  vstrbt.8 q0, [r3]
)" ORCH_RETURN ORCH_END("orch_largest_of"));

#elif ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
constexpr int32_t kChannels = 4;

void largest_of(const Pool& pool, const PoolWindow& window, const int8_t* x,
                int32_t, const Range& range, int8_t* y) {
  constexpr uint32_t kEach = 0x01010101;
  uint32_t largest = kEach * static_cast<uint8_t>(range.low);
  for_each_tap(pool.taps, window, x, [&](const int8_t* item) {
    largest = extreme_of_four<true>(largest, load_four(item));
  });
  const uint32_t limit = kEach * static_cast<uint8_t>(range.high);
  largest = extreme_of_four<false>(largest, limit);
  memcpy(y, &largest, sizeof largest);
}
#endif

void find_largest(const PreparedCall& prepared) {
  const auto& call = static_cast<const MaxPoolCall&>(prepared);
  const Pool& pool = call.pool;
  const Range& range = call.range;
  const int8_t* const x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  const int32_t channels = pool.taps.channels;
#if ORCH_ISA == ORCH_ISA_MVE
  Largest of = {0, 0, pool.taps.column_step, pool.taps.row_step, range};
#endif
  for_each_window(pool, [&](const PoolWindow& window) {
    int32_t c = 0;
#if ORCH_ISA == ORCH_ISA_MVE
    of.rows = window.rows;
    of.columns = window.columns;
    for (; c < channels; c += kChannels) {
      const int32_t left = channels - c;
      const int32_t now = left < kChannels ? left : kChannels;
      orch_largest_of(&of, x + window.first + c, now, y);
      y += now;
    }
#elif ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
    for (; channels - c >= kChannels; c += kChannels) {
      largest_of(pool, window, x + window.first + c, kChannels, range, y);
      y += kChannels;
    }
#endif
    for (; c < channels; ++c) {
      int32_t largest = INT8_MIN;
      for_each_tap(pool.taps, window, x + window.first + c,
                   [&](const int8_t* item) {
                     if (*item > largest) largest = *item;
                   });
      *y++ = static_cast<int8_t>(clamp(largest, range));
    }
  });
}

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(10);

  int32_t zero_point;
  MaxPoolCall call;
  ORCH_TRY(read_item(args, 6, zero_point));
  ORCH_CHECK(args.integer(7) == zero_point, Error::InvalidArgument);
  ORCH_TRY(read_range(args, 8, 9, call.range));
  ORCH_TRY(prepare_pool(args, layout, true, args.boolean(5), call.pool, out));
  call.input = input.memory;
  call.out = out.memory;
  find_largest(call);
  return Error::Ok;
}

}  // namespace

// cortex_m::quantized_max_pool2d.out(Tensor input, int[] kernel_size,
//   int[] stride, int[] padding, int[] dilation, bool ceil_mode,
//   int input_zero_point, int output_zero_point, int activation_min,
//   int activation_max, *, Tensor(a!) out) -> Tensor(a!)
//
// Padding does not count. Input and output have one scale, so their zero points
// are the same.
Error quantized_max_pool2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_max_pool2d_nhwc.out: the same arguments; images have
//   sizes [N, H, W, C].
Error quantized_max_pool2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

void quantized_max_pool2d(const PreparedCall& call) { find_largest(call); }

}  // namespace orch::cortex_m
