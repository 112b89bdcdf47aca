#include "convolve.h"
#include "orch/kernel.h"

namespace orch::cortex_m {
namespace {

Error run(const Args& args, Layout layout) {
  Convolution conv;
  ORCH_TRY(prepare(args, Kind::kDepthwise, layout, conv));
  convolve_depthwise(conv);
  return Error::Ok;
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

void quantized_depthwise_conv2d(const PreparedCall& call) {
  convolve_depthwise(convolution_of(static_cast<const ConvolutionCall&>(call)));
}

}  // namespace orch::cortex_m
