#include "window.h"

namespace cmsis_adapter {
namespace {

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);  // [1, H, W, out]
  const Tensor* bias = args.optional_tensor(2);
  Tensor& out = args.tensor(14);

  Window window;
  ORCH_TRY(read_window(args, layout, {7, 9}, &Image::channels, out, window));
  int32_t multiplier;
  ORCH_TRY(read_int(args.integer(6), 1, multiplier));
  ORCH_CHECK(
      window.filter.batch == 1 &&
          int64_t{window.in.channels} * multiplier == window.filter.channels,
      Error::InvalidArgument);

  const cmsis_nn_dw_conv_params params = {
      window.input_offset, window.output_offset, multiplier,
      window.stride(),     window.padding(),     window.dilation(),
      window.activation()};
  const auto scales = to_scales(args.tensor(9), args.tensor(10));
  const cmsis_nn_dims in = to_dims(window.in);
  const cmsis_nn_dims filter = to_dims(window.filter);
  const cmsis_nn_dims to = to_dims(window.out);
  const cmsis_nn_dims per_output = {1, 1, 1, window.out.channels};
  cmsis_nn_context context;
  ORCH_TRY(give_scratch(
      args.tensor(13),
      arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &in, &filter, &to),
      context));
  return to_error(arm_depthwise_conv_wrapper_s8(
      &context, &params, &scales, &in, input.data<int8_t>(), &filter,
      weight.data<int8_t>(), &per_output, int_data(bias), &to,
      out.mutable_data<int8_t>()));
}

}  // namespace

// cortex_m::quantized_depthwise_conv2d.out(Tensor input, Tensor weight,
//   Tensor? bias, int[] stride, int[] padding, int[] dilation,
//   int depth_multiplier, int input_offset, int output_offset,
//   Tensor requantize_multipliers, Tensor requantize_shifts,
//   int activation_min, int activation_max, Tensor scratch, *, Tensor(a!) out)
//   -> Tensor(a!)
Error quantized_depthwise_conv2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_depthwise_conv2d_nhwc.out: the same arguments; images
//   have sizes [N, H, W, C].
Error quantized_depthwise_conv2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

}  // namespace cmsis_adapter
