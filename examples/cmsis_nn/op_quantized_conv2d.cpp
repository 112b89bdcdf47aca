#include "window.h"

namespace cmsis_adapter {
namespace {

Error run(const Args& args, Layout layout) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);  // [out, H, W, in of a group]
  const Tensor* bias = args.optional_tensor(2);
  Tensor& out = args.tensor(13);

  Window window;
  ORCH_TRY(read_window(args, layout, {6, 8}, &Image::batch, out, window));
  ORCH_CHECK(window.in.channels % window.filter.channels == 0,
             Error::InvalidArgument);
  const int32_t groups = window.in.channels / window.filter.channels;
  ORCH_CHECK(window.filter.batch % groups == 0, Error::InvalidArgument);
  // CMSIS-NN steps from group to group through the bias, also if there is none.
  ORCH_CHECK(groups == 1 || bias != nullptr, Error::NotSupported);

  const cmsis_nn_conv_params params = {
      window.input_offset, window.output_offset, window.stride(),
      window.padding(),    window.dilation(),    window.activation()};
  const auto scales = to_scales(args.tensor(8), args.tensor(9));
  const cmsis_nn_dims in = to_dims(window.in);
  const cmsis_nn_dims filter = to_dims(window.filter);
  const cmsis_nn_dims to = to_dims(window.out);
  const cmsis_nn_dims per_output = {1, 1, 1, window.out.channels};
  cmsis_nn_context context;
  ORCH_TRY(give_scratch(
      args.tensor(12),
      arm_convolve_wrapper_s8_get_buffer_size(&params, &in, &filter, &to),
      context));
  return to_error(arm_convolve_wrapper_s8(
      &context, &params, &scales, &in, input.data<int8_t>(), &filter,
      weight.data<int8_t>(), &per_output, int_data(bias), &to,
      out.mutable_data<int8_t>()));
}

}  // namespace

// cortex_m::quantized_conv2d.out(Tensor input, Tensor weight, Tensor? bias,
//   int[] stride, int[] padding, int[] dilation, int input_offset,
//   int output_offset, Tensor requantize_multipliers, Tensor requantize_shifts,
//   int activation_min, int activation_max, Tensor scratch, *, Tensor(a!) out)
//   -> Tensor(a!)
Error quantized_conv2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_conv2d_nhwc.out: the same arguments; images have sizes
//   [N, H, W, C].
Error quantized_conv2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

}  // namespace cmsis_adapter
