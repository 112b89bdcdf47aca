#include "adapter.h"
#include "cortex_m/pool.h"

namespace cmsis_adapter {
namespace {

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(9);

  Pool pool;
  ORCH_TRY(prepare_pool(args, layout, false, args.boolean(4), pool, out));
  ORCH_CHECK(fits(input_of(pool)) && fits(output_of(pool)),
             Error::NotSupported);
  const cmsis_nn_pool_params params = {
      {pool.columns.stride, pool.rows.stride},
      {pool.columns.padding, pool.rows.padding},
      {INT8_MIN, INT8_MAX}};
  const cmsis_nn_dims in = to_dims(input_of(pool));
  const cmsis_nn_dims window = {1, pool.rows.kernel, pool.columns.kernel, 1};
  const cmsis_nn_dims to = to_dims(output_of(pool));
  cmsis_nn_context context;
  ORCH_TRY(give_scratch(args.tensor(8),
                        arm_avgpool_s8_get_buffer_size(to.w, in.c), context));
  return to_error(arm_avgpool_s8(&context, &params, &in, input.data<int8_t>(),
                                 &window, &to, out.mutable_data<int8_t>()));
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

}  // namespace cmsis_adapter
