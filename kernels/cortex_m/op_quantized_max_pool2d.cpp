#include "image.h"
#include "orch/kernel.h"
#include "pool.h"

namespace orch::cortex_m {
namespace {

void find_largest(const Pool& pool, const Range& range, const int8_t* x,
                  int8_t* y) {
  const int32_t channels = pool.in.channels;
  for_each_window(pool, [&](const PoolWindow& window) {
    for (int32_t c = 0; c < channels; ++c) {
      int32_t largest = INT8_MIN;
      const int8_t* row = x + window.first + c;
      for (int32_t i = window.rows; i > 0; --i) {
        const int8_t* from = row;
        for (int32_t j = window.columns; j > 0; --j) {
          if (*from > largest) largest = *from;
          from += pool.column_step;
        }
        row += pool.row_step;
      }
      *y++ = static_cast<int8_t>(clamp(largest, range));
    }
  });
}

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(10);

  int32_t zero_point;
  Range range;
  ORCH_TRY(read_item(args, 6, zero_point));
  ORCH_CHECK(args.integer(7) == zero_point, Error::InvalidArgument);
  ORCH_TRY(read_range(args, 8, 9, range));
  Pool pool;
  ORCH_TRY(prepare_pool(args, layout, true, args.boolean(5), pool, out));
  find_largest(pool, range, input.data<int8_t>(), out.mutable_data<int8_t>());
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

}  // namespace orch::cortex_m
