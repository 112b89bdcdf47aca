// Parameters of convolutions.
#pragma once

#include "convolve.h"
#include "orch/value.h"
#include "util/check.h"

namespace orch::portable {

/// Finds the size of the output along one axis. Errors: InvalidArgument.
inline Error set_output(Axis& axis, bool transposed, int32_t output_padding) {
  // Below 2^62: every factor is at most 2^31.
  const int64_t window = int64_t{axis.dilation} * (axis.kernel - 1) + 1;
  const int64_t padded = axis.in + 2 * int64_t{axis.padding};
  ORCH_CHECK(window <= kMaxExtent, Error::InvalidArgument);
  if (transposed) {
    const int64_t out = int64_t{axis.in - 1} * axis.stride -
                        2 * int64_t{axis.padding} + window + output_padding;
    ORCH_CHECK(out > 0 && out <= kMaxExtent, Error::InvalidArgument);
    axis.out = static_cast<int32_t>(out);
  } else {
    ORCH_CHECK(padded >= window && padded <= kMaxExtent,
               Error::InvalidArgument);
    axis.out = static_cast<int32_t>(padded - window) / axis.stride + 1;
  }
  return Error::Ok;
}

/// Reads the parameters and checks them against the tensors; gives the sizes of
/// the output. Missing dimensions become ones of size 1.
///
/// first: the argument that is the input. Weight, bias, stride, padding,
/// dilation, transposed, output_padding and groups follow; the bias is left to
/// the caller. Errors: InvalidArgument; NotSupported (no batch of lines, images
/// or volumes).
inline Error read_convolution(const Args& args, int first, Convolution& conv,
                              int32_t* sizes) {
  const Tensor& input = args.tensor(first);
  const Tensor& weight = args.tensor(first + 1);

  ORCH_CHECK(input.dim >= 3 && input.dim <= 5, Error::NotSupported);
  ORCH_CHECK(weight.dim == input.dim && weight.dtype == input.dtype,
             Error::InvalidArgument);
  const int spatial = input.dim - 2;
  int32_t stride[3];
  int32_t padding[3];
  int32_t dilation[3];
  int32_t output_padding[3];
  ORCH_TRY(read_ints(args.int_list(first + 3), spatial, 1, stride));
  ORCH_TRY(read_ints(args.int_list(first + 4), spatial, 0, padding));
  ORCH_TRY(read_ints(args.int_list(first + 5), spatial, 1, dilation));
  conv.transposed = args.boolean(first + 6);
  ORCH_TRY(read_ints(args.int_list(first + 7), spatial, 0, output_padding));

  ORCH_TRY(read_int(args.integer(first + 8), 1, conv.groups));
  ORCH_CHECK(weight.size(0) > 0 && weight.size(0) % conv.groups == 0,
             Error::InvalidArgument);
  const int64_t groups = conv.groups;
  const int64_t in_channels =
      conv.transposed ? weight.size(0) : weight.size(1) * groups;
  const int64_t out_channels =
      conv.transposed ? weight.size(1) * groups : weight.size(0);
  ORCH_CHECK(input.size(1) == in_channels && out_channels <= kMaxExtent,
             Error::InvalidArgument);
  sizes[0] = input.size(0);
  sizes[1] = static_cast<int32_t>(out_channels);
  for (int i = 0; i < 3 - spatial; ++i) {
    conv.axes[i] = {1, 1, 1, 1, 0, 1};
  }
  for (int i = 0; i < spatial; ++i) {
    const int d = 2 + i;
    ORCH_CHECK(weight.size(d) > 0, Error::InvalidArgument);
    ORCH_CHECK(output_padding[i] == 0 || !conv.transposed ||
                   output_padding[i] < stride[i] ||
                   output_padding[i] < dilation[i],
               Error::InvalidArgument);
    Axis& axis = conv.axes[3 - spatial + i];
    axis = {input.size(d), 0,          weight.size(d),
            stride[i],     padding[i], dilation[i]};
    ORCH_TRY(set_output(axis, conv.transposed, output_padding[i]));
    sizes[d] = axis.out;
  }
  return Error::Ok;
}

}  // namespace orch::portable
