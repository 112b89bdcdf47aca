#include "convolve.h"
#include "orch/kernel.h"

namespace orch::cortex_m {
namespace {

Error run(const Args& args, Layout layout) {
  Convolution conv;
  ORCH_TRY(prepare(args, Kind::kConvolution, layout, conv));
  const auto is_plain = [](const Axis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.padding == 0;
  };
  if (conv.group_channels == conv.in.channels && is_plain(conv.rows) &&
      is_plain(conv.columns)) {
    // All pixels of all images are rows of one matrix.
    multiply(conv, conv.in.batch * conv.in.height * conv.in.width,
             conv.in.channels, conv.out.channels);
  } else {
    convolve(conv);
  }
  return Error::Ok;
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

// Prepared: any convolution, and one that is a matrix product.
void quantized_conv2d(const PreparedCall& call) {
  convolve(convolution_of(static_cast<const ConvolutionCall&>(call)));
}

void quantized_conv2d_matrix(const PreparedCall& call) {
  multiply(static_cast<const ConvolutionCall&>(call));
}

}  // namespace orch::cortex_m
