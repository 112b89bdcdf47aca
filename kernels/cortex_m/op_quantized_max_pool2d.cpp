#include <string.h>

#include "extreme.h"
#include "image.h"
#include "orch/kernel.h"
#include "pool.h"

namespace orch::cortex_m {
namespace {

// Largest items of sixteen channels, or of four, at once.
#if ORCH_ISA == ORCH_ISA_MVE
constexpr int32_t kChannels = 16;

void largest_of(const Pool& pool, const PoolWindow& window, const int8_t* x,
                int32_t channels, const Range& range, int8_t* y) {
  int32_t rows = window.rows;
  const int8_t* from;
  asm volatile(
      "vdup.8 q0, %[low]\n"
      "vctp.8 %[channels]\n"
      "1:\n"
      "mov %[from], %[x]\n"
      "dls lr, %[columns]\n"
      "2:\n"
      "vpst\n"
      "vldrbt.8 q1, [%[from]]\n"
      "add %[from], %[from], %[column_step]\n"
      "vmax.s8 q0, q0, q1\n"
      "le lr, 2b\n"
      "add %[x], %[x], %[row_step]\n"
      "subs %[rows], %[rows], #1\n"
      "bne 1b\n"
      "vdup.8 q1, %[high]\n"
      "vmin.s8 q0, q0, q1\n"
      "vpst\n"
      "vstrbt.8 q0, [%[y]]\n"
      : [from] "=&r"(from), [x] "+r"(x), [rows] "+r"(rows)
      : [channels] "r"(channels), [columns] "r"(window.columns),
        [column_step] "r"(pool.taps.column_step),
        [row_step] "r"(pool.taps.row_step), [low] "r"(range.low),
        [high] "r"(range.high), [y] "r"(y)
      : "lr", "q0", "q1", "cc", "memory");
}
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
  for_each_window(pool, [&](const PoolWindow& window) {
    int32_t c = 0;
#if ORCH_ISA == ORCH_ISA_MVE
    for (; c < channels; c += kChannels) {
      const int32_t left = channels - c;
      const int32_t now = left < kChannels ? left : kChannels;
      largest_of(pool, window, x + window.first + c, now, range, y);
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
