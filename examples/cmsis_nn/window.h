// Arguments that convolutions have in common.
#pragma once

#include "adapter.h"

namespace cmsis_adapter {

/// Arguments of an operator by position, after input, weight, bias, stride,
/// padding and dilation.
struct Positions {
  int input_offset;  // output_offset follows
  int multipliers;   // shifts and the limits of the output follow
};

/// What two kinds of convolution share.
struct Window {
  Image in;
  Image filter;
  Image out;
  Axis rows;
  Axis columns;
  int32_t input_offset;
  int32_t output_offset;
  Range range;

  cmsis_nn_tile stride() const { return {columns.stride, rows.stride}; }
  cmsis_nn_tile padding() const { return {columns.padding, rows.padding}; }
  cmsis_nn_tile dilation() const { return {columns.dilation, rows.dilation}; }
  cmsis_nn_activation activation() const { return {range.low, range.high}; }
};

/// Reads the parameters, checks them against the tensors and gives `out` its
/// sizes. The filter has `outputs` channels as that of its sizes. Errors:
/// InvalidArgument, NotSupported.
inline Error read_window(const Args& args, Layout layout,
                         const Positions& positions, int32_t Image::*outputs_of,
                         Tensor& out, Window& window) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  const Tensor& multipliers = args.tensor(positions.multipliers);
  const Tensor& shifts = args.tensor(positions.multipliers + 1);

  ORCH_TRY(read_image(input, layout, window.in));
  ORCH_TRY(read_image(weight, Layout::kNhwc, window.filter));
  ORCH_CHECK(fits(window.in) && fits(window.filter), Error::NotSupported);
  window.rows.kernel = window.filter.height;
  window.columns.kernel = window.filter.width;
  ORCH_TRY(read_axes(args, 3, 3, window.in, window.rows, window.columns));
  const int32_t outputs = window.filter.*outputs_of;
  ORCH_CHECK(is_per_channel(multipliers, outputs) &&
                 is_per_channel(shifts, outputs) &&
                 (bias == nullptr || is_per_channel(*bias, outputs)),
             Error::InvalidArgument);
  ORCH_TRY(read_offset(args, positions.input_offset, window.input_offset));
  ORCH_TRY(read_item(args, positions.input_offset + 1, window.output_offset));
  ORCH_TRY(read_range(args, positions.multipliers + 2,
                      positions.multipliers + 3, window.range));

  Axis* const axes[] = {&window.rows, &window.columns};
  for (Axis* axis : axes) {
    ORCH_TRY(set_output(*axis));
    ORCH_CHECK(axis->stride <= kMaxSize && axis->padding <= kMaxSize &&
                   axis->dilation <= kMaxSize,
               Error::NotSupported);
  }
  window.out = {window.in.batch, window.rows.out, window.columns.out, outputs};
  ORCH_CHECK(fits(window.out), Error::NotSupported);
  return resize_image(out, layout, window.out, input, weight, multipliers,
                      shifts);
}

}  // namespace cmsis_adapter
