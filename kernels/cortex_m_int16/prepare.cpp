#include "convolve.h"
#include "util/check.h"
#include "util/scratch.h"

namespace orch::cortex_m_int16 {

Error prepare(const Args& args, Kind kind, Convolution& conv) {
  const bool depthwise = kind == Kind::kDepthwise;
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  // Arguments after the dilation; a depthwise one has its multiplier before
  // them.
  const int next = depthwise ? 7 : 6;
  const Tensor& multipliers = args.tensor(next + 2);
  const Tensor& shifts = args.tensor(next + 3);
  Tensor& out = args.tensor(next + 7);

  ORCH_TRY(read_image(input, conv.in));
  Image filter;
  ORCH_TRY(cortex_m::read_image(weight, Layout::kNhwc, filter));
  conv.rows.kernel = filter.height;
  conv.columns.kernel = filter.width;
  ORCH_TRY(cortex_m::read_axes(args, 3, 3, conv.in, conv.rows, conv.columns));
  ORCH_CHECK(weight.numel() > 0, Error::InvalidArgument);
  const int32_t outputs = depthwise ? filter.channels : filter.batch;
  conv.multiplier = 1;
  conv.group_channels = filter.channels;
  if (depthwise) {
    ORCH_TRY(read_int(args.integer(6), 1, conv.multiplier));
    ORCH_CHECK(filter.batch == 1 &&
                   int64_t{conv.in.channels} * conv.multiplier == outputs,
               Error::InvalidArgument);
  } else {
    ORCH_CHECK(conv.in.channels % filter.channels == 0, Error::InvalidArgument);
    const int32_t groups = conv.in.channels / filter.channels;
    ORCH_CHECK(groups > 0 && outputs % groups == 0, Error::InvalidArgument);
    conv.group_outputs = outputs / groups;
  }
  ORCH_CHECK(cortex_m::is_per_channel(multipliers, outputs) &&
                 cortex_m::is_per_channel(shifts, outputs),
             Error::InvalidArgument);
  ORCH_TRY(read_bias(bias, outputs, conv.bias));
  conv.multipliers = multipliers.data<int32_t>();
  conv.shifts = shifts.data<int32_t>();
  conv.scale_step = 1;
  for (int32_t c = 0; c < outputs; ++c) {
    ORCH_CHECK(cortex_m::is_shift(conv.shifts[c]), Error::InvalidArgument);
  }
  ORCH_TRY(read_zero(args, next));
  ORCH_TRY(read_zero(args, next + 1));
  ORCH_TRY(read_limits(args, next + 4, next + 5, conv.range));

  ORCH_TRY(cortex_m::set_output(conv.rows));
  ORCH_TRY(cortex_m::set_output(conv.columns));
  conv.out = {conv.in.batch, conv.rows.out, conv.columns.out, outputs};
  ORCH_TRY_DATA(check_scratch(args.tensor(next + 6), 0));
  ORCH_TRY(resize_image(out, conv.out, input, weight, multipliers, shifts));
  conv.x = input.data<int16_t>();
  conv.w = weight.data<int8_t>();
  conv.y = out.mutable_data<int16_t>();
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
