#include "orch/kernel.h"
#include "pool.h"
#include "util/scratch.h"

namespace orch::cortex_m_int16 {

// cortex_m::quantized_avg_pool2d.out(Tensor input, int[] kernel_size,
//   int[] stride, int[] padding, bool ceil_mode, int zero_point,
//   int multiplier, int shift, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)
//
// Padding does not count. Input and output have one scale, which does not
// matter. Ties go away from zero.
Error quantized_avg_pool2d_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(9);

  Pool pool;
  ORCH_TRY(read_zero(args, 5));
  ORCH_TRY(prepare_pool(args, false, args.boolean(4), pool, out));
  ORCH_TRY_DATA(check_scratch(args.tensor(8), 0));
  const int16_t* const x = input.data<int16_t>();
  int16_t* y = out.mutable_data<int16_t>();
  cortex_m::for_each_window(pool, [&](const PoolWindow& window) {
    const int32_t count = window.rows * window.columns;
    const int32_t half = count / 2;
    for (int32_t c = 0; c < pool.taps.channels; ++c) {
      int32_t sum = 0;
      for_each_tap(pool.taps, window, x + window.first + c,
                   [&](int32_t item) { sum += item; });
      *y++ = static_cast<int16_t>((sum > 0 ? sum + half : sum - half) / count);
    }
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
