#include "orch_selected/op_convolution.h"

#include "convolve.h"
#include "convolve_mve.h"
#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::portable {
namespace {

/// Finds the size of the output along one axis. Errors: InvalidArgument.
Error set_output(Axis& axis, int32_t output_padding) {
  // Below 2^62: every factor is at most 2^31.
  const int64_t window = int64_t{axis.dilation} * (axis.kernel - 1) + 1;
  const int64_t padded = axis.in + 2 * int64_t{axis.padding};
  ORCH_CHECK(window <= kMaxExtent, Error::InvalidArgument);
  if (axis.transposed) {
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

/// Reads the parameters and checks them against the tensors; gives `out` its
/// sizes. A convolution with one dimension becomes one with H of size 1.
Error prepare(const Args& args, Convolution& conv) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  Tensor& out = args.tensor(9);

  ORCH_CHECK(input.dim == 3 || input.dim == 4, Error::NotSupported);
  ORCH_CHECK(weight.dim == input.dim && weight.dtype == input.dtype &&
                 out.dtype == input.dtype,
             Error::InvalidArgument);
  const int spatial = input.dim - 2;
  int32_t stride[2];
  int32_t padding[2];
  int32_t dilation[2];
  int32_t output_padding[2];
  ORCH_TRY(read_ints(args.int_list(3), spatial, 1, stride));
  ORCH_TRY(read_ints(args.int_list(4), spatial, 0, padding));
  ORCH_TRY(read_ints(args.int_list(5), spatial, 1, dilation));
  conv.transposed = args.boolean(6);
  ORCH_TRY(read_ints(args.int_list(7), spatial, 0, output_padding));

  ORCH_TRY(read_int(args.integer(8), 1, conv.groups));
  ORCH_CHECK(weight.size(0) > 0 && weight.size(0) % conv.groups == 0,
             Error::InvalidArgument);
  const int64_t groups = conv.groups;
  const int64_t in_channels =
      conv.transposed ? weight.size(0) : weight.size(1) * groups;
  const int64_t out_channels =
      conv.transposed ? weight.size(1) * groups : weight.size(0);
  ORCH_CHECK(input.size(1) == in_channels && out_channels <= kMaxExtent,
             Error::InvalidArgument);
  if (bias != nullptr) {
    ORCH_CHECK(bias->dtype == input.dtype && bias->dim == 1 &&
                   bias->size(0) == out_channels,
               Error::InvalidArgument);
  }

  conv.axes[0] = {1, 1, 1, 1, 0, 1, false};
  int32_t sizes[4] = {input.size(0), static_cast<int32_t>(out_channels)};
  for (int i = 0; i < spatial; ++i) {
    const int d = 2 + i;
    ORCH_CHECK(weight.size(d) > 0, Error::InvalidArgument);
    ORCH_CHECK(output_padding[i] == 0 || !conv.transposed ||
                   output_padding[i] < stride[i] ||
                   output_padding[i] < dilation[i],
               Error::InvalidArgument);
    Axis& axis = conv.axes[2 - spatial + i];
    axis = {input.size(d), 0,           weight.size(d), stride[i],
            padding[i],    dilation[i], conv.transposed};
    ORCH_TRY(set_output(axis, output_padding[i]));
    sizes[d] = axis.out;
  }
  if (bias != nullptr) {
    return resize_output(out, {sizes, input.dim}, input, weight, *bias);
  }
  return resize_output(out, {sizes, input.dim}, input, weight);
}

template <typename T>
void convolve(const Convolution& conv, const Tensor& input,
              const Tensor& weight, const Tensor* bias, Tensor& out) {
  Filters filters(conv, input, weight, out);
  const T* start = bias == nullptr ? nullptr : bias->data<T>();
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<T, float>) {
    convolve_vectors(filters, input.data<T>(), weight.data<T>(), start,
                     out.mutable_data<T>());
    return;
  } else
#endif
  {
    convolve_plain(filters, input.data<T>(), weight.data<T>(), start,
                   out.mutable_data<T>());
  }
}

}  // namespace

// aten::convolution.out(Tensor input, Tensor weight, Tensor? bias,
//   SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,
//   SymInt[] output_padding, SymInt groups, *, Tensor(a!) out) -> Tensor(a!)
Error convolution_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Convolution conv;
  ORCH_TRY(prepare(args, conv));
  constexpr DtypeSet kDtypes = selected::aten_convolution_out;
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    convolve<typename decltype(type)::type>(
        conv, input, args.tensor(1), args.optional_tensor(2), args.tensor(9));
    return Error::Ok;
  });
}

}  // namespace orch::portable
