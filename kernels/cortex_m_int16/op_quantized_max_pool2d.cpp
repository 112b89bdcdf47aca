#include "orch/kernel.h"
#include "pool.h"

namespace orch::cortex_m_int16 {

// cortex_m::quantized_max_pool2d.out(Tensor input, int[] kernel_size,
//   int[] stride, int[] padding, int[] dilation, bool ceil_mode,
//   int input_zero_point, int output_zero_point, int activation_min,
//   int activation_max, *, Tensor(a!) out) -> Tensor(a!)
//
// Padding does not count. Input and output have one scale.
Error quantized_max_pool2d_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(10);

  Pool pool;
  Range range;
  ORCH_TRY(read_zero(args, 6));
  ORCH_TRY(read_zero(args, 7));
  ORCH_TRY(read_limits(args, 8, 9, range));
  ORCH_TRY(prepare_pool(args, true, args.boolean(5), pool, out));
  const int16_t* const x = input.data<int16_t>();
  int16_t* y = out.mutable_data<int16_t>();
  cortex_m::for_each_window(pool, [&](const PoolWindow& window) {
    for (int32_t c = 0; c < pool.taps.channels; ++c) {
      int32_t largest = INT16_MIN;
      for_each_tap(pool.taps, window, x + window.first + c, [&](int32_t item) {
        if (item > largest) largest = item;
      });
      *y++ = static_cast<int16_t>(cortex_m::clamp(largest, range));
    }
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
