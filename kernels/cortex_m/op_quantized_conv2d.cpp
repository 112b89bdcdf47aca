#include "convolve.h"
#include "orch/kernel.h"
#include "util/check.h"
#include "util/scratch.h"

namespace orch::cortex_m {
namespace {

/// Reads the parameters and checks them against the tensors; gives `out` its
/// sizes.
__attribute__((noinline)) Error prepare(const Args& args, Layout layout,
                                        Convolution& conv) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);  // [out, H, W, in of a group]
  const Tensor* bias = args.optional_tensor(2);
  const Tensor& multipliers = args.tensor(8);
  const Tensor& shifts = args.tensor(9);
  const Tensor& scratch = args.tensor(12);
  Tensor& out = args.tensor(13);

  ORCH_TRY(read_image(input, layout, conv.in));
  Image filter;
  ORCH_TRY(read_image(weight, Layout::kNhwc, filter));
  int32_t stride[2];
  int32_t padding[2];
  int32_t dilation[2];
  ORCH_TRY(read_ints(args.int_list(3), 2, 1, stride));
  ORCH_TRY(read_ints(args.int_list(4), 2, 0, padding));
  ORCH_TRY(read_ints(args.int_list(5), 2, 1, dilation));
  ORCH_CHECK(weight.numel() > 0 && conv.in.channels % filter.channels == 0,
             Error::InvalidArgument);
  const int32_t groups = conv.in.channels / filter.channels;
  const int32_t outputs = filter.batch;
  ORCH_CHECK(groups > 0 && outputs % groups == 0, Error::InvalidArgument);
  ORCH_CHECK(is_per_channel(multipliers, outputs) &&
                 is_per_channel(shifts, outputs) &&
                 (bias == nullptr || is_per_channel(*bias, outputs)),
             Error::InvalidArgument);
  ORCH_TRY(read_offset(args.integer(6), conv.x_offset));
  ORCH_TRY(read_between(args.integer(7), -128, 127, conv.to.offset));
  ORCH_TRY(read_range(args.integer(10), args.integer(11), conv.to.range));

  conv.rows = {conv.in.height, 0,          filter.height,
               stride[0],      padding[0], dilation[0]};
  conv.columns = {conv.in.width, 0,          filter.width,
                  stride[1],     padding[1], dilation[1]};
  ORCH_TRY(set_output(conv.rows));
  ORCH_TRY(set_output(conv.columns));
  conv.out = {conv.in.batch, conv.rows.out, conv.columns.out, outputs};
  ORCH_TRY(check_scratch(scratch, 0));
  ORCH_TRY(
      resize_image(out, layout, conv.out, input, weight, multipliers, shifts));
  Image written;
  ORCH_TRY(read_image(out, layout, written));

  conv.group_channels = filter.channels;
  conv.group_outputs = outputs / groups;
  conv.w_offset = 0;
  conv.x = input.data<int8_t>();
  conv.w = weight.data<int8_t>();
  conv.bias = bias == nullptr ? nullptr : bias->data<int32_t>();
  conv.y = out.mutable_data<int8_t>();
  conv.to.multipliers = multipliers.data<int32_t>();
  conv.to.shifts = shifts.data<int32_t>();
  conv.to.step = 1;
  return Error::Ok;
}

Error run(const Args& args, Layout layout) {
  Convolution conv;
  ORCH_TRY(prepare(args, layout, conv));
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

}  // namespace orch::cortex_m
