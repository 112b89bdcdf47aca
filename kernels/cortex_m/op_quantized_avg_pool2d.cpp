#include "image.h"
#include "orch/kernel.h"
#include "pool.h"
#include "util/check.h"
#include "util/scratch.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "mve.h"
#endif

namespace orch::cortex_m {
namespace {

/// sum / count, rounded to nearest, ties away from zero.
int8_t average(int32_t sum, int32_t count) {
  const int32_t half = count / 2;
  return static_cast<int8_t>((sum > 0 ? sum + half : sum - half) / count);
}

#if ORCH_ISA == ORCH_ISA_MVE
/// Four channels of a window, the first of which is at `row`.
ORCH_HOT void average_four(const Pool& pool, const PoolWindow& window,
                           const int8_t* row, int8_t* y) {
  int32x4_t sums = vdupq_n_s32(0);
  for (int32_t i = window.rows; i > 0; --i) {
    const int8_t* from = row;
    for (int32_t j = window.columns; j > 0; --j) {
      sums = vaddq_s32(sums, vldrbq_s32(from));
      from += pool.column_step;
    }
    row += pool.row_step;
  }
  int32_t items[4];
  vstrwq_s32(items, sums);
  for (const int32_t item : items) {
    *y++ = average(item, window.rows * window.columns);
  }
}
#endif

void average_windows(const Pool& pool, const int8_t* x, int8_t* y) {
  const int32_t channels = pool.in.channels;
  for_each_window(pool, [&](const PoolWindow& window) {
    int32_t c = 0;
#if ORCH_ISA == ORCH_ISA_MVE
    for (; c + 4 <= channels; c += 4) {
      average_four(pool, window, x + window.first + c, y);
      y += 4;
    }
#endif
    for (; c < channels; ++c) {
      int32_t sum = 0;
      const int8_t* row = x + window.first + c;
      for (int32_t i = 0; i < window.rows; ++i) {
        const int8_t* from = row;
        for (int32_t j = 0; j < window.columns; ++j) {
          sum += *from;
          from += pool.column_step;
        }
        row += pool.row_step;
      }
      *y++ = average(sum, window.rows * window.columns);
    }
  });
}

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  const Tensor& scratch = args.tensor(8);
  Tensor& out = args.tensor(9);

  Pool pool;
  ORCH_TRY(prepare_pool(args, layout, false, args.boolean(4), pool, out));
  ORCH_TRY(check_scratch(scratch, 0));
  average_windows(pool, input.data<int8_t>(), out.mutable_data<int8_t>());
  return Error::Ok;
}

}  // namespace

// cortex_m::quantized_avg_pool2d.out(Tensor input, int[] kernel_size,
//   int[] stride, int[] padding, bool ceil_mode, int zero_point,
//   int multiplier, int shift, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// Padding does not count. Input and output have one scale, so zero_point,
// multiplier and shift do not matter.
Error quantized_avg_pool2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_avg_pool2d_nhwc.out: the same arguments; images have
//   sizes [N, H, W, C].
Error quantized_avg_pool2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

}  // namespace orch::cortex_m
