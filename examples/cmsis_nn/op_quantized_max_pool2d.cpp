#include "adapter.h"
#include "cortex_m/pool.h"

namespace cmsis_adapter {
namespace {

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
  ORCH_CHECK(fits(input_of(pool)) && fits(output_of(pool)) &&
                 pool.rows.dilation == 1 && pool.columns.dilation == 1,
             Error::NotSupported);
  const cmsis_nn_pool_params params = {
      {pool.columns.stride, pool.rows.stride},
      {pool.columns.padding, pool.rows.padding},
      {range.low, range.high}};
  const cmsis_nn_dims in = to_dims(input_of(pool));
  const cmsis_nn_dims window = {1, pool.rows.kernel, pool.columns.kernel, 1};
  const cmsis_nn_dims to = to_dims(output_of(pool));
  const cmsis_nn_context context = {nullptr, 0};
  return to_error(arm_max_pool_s8(&context, &params, &in, input.data<int8_t>(),
                                  &window, &to, out.mutable_data<int8_t>()));
}

}  // namespace

// cortex_m::quantized_max_pool2d.out(Tensor input, int[] kernel_size,
//   int[] stride, int[] padding, int[] dilation, bool ceil_mode,
//   int input_zero_point, int output_zero_point, int activation_min,
//   int activation_max, *, Tensor(a!) out) -> Tensor(a!)
//
// Padding does not count. CMSIS-NN has no dilation.
Error quantized_max_pool2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_max_pool2d_nhwc.out: the same arguments; images have
//   sizes [N, H, W, C].
Error quantized_max_pool2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

}  // namespace cmsis_adapter
