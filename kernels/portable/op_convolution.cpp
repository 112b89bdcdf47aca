#include "orch_selected/op_convolution.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dot.h"
#include "util/dtype.h"
#include "util/planes.h"

namespace orch::portable {
namespace {

/// Where the weights lie over the input along one dimension, H or W.
struct Axis {
  int32_t in;
  int32_t out;
  int32_t kernel;
  int32_t stride;
  int32_t padding;
  int32_t dilation;
  bool transposed;
};

/// The weights that meet an input at one output position: `count` of them, in
/// even steps.
struct Taps {
  int32_t count;
  int32_t kernel;
  int32_t kernel_step;
  int32_t in;
  int32_t in_step;
};

/// Output o and weight k meet input i where, in a convolution,
/// i = o * stride - padding + k * dilation, and in a transposed one
/// o = i * stride - padding + k * dilation.
Taps taps_at(const Axis& axis, int32_t o) {
  Taps taps = {};
  for (int32_t k = 0; k < axis.kernel; ++k) {
    int32_t i;
    if (axis.transposed) {
      i = o + axis.padding - k * axis.dilation;
      if (i % axis.stride != 0) continue;
      i /= axis.stride;
    } else {
      i = o * axis.stride - axis.padding + k * axis.dilation;
    }
    if (i < 0 || i >= axis.in) continue;
    if (taps.count == 0) {
      taps.kernel = k;
      taps.in = i;
    } else if (taps.count == 1) {
      taps.kernel_step = k - taps.kernel;
      taps.in_step = i - taps.in;
    }
    ++taps.count;
  }
  return taps;
}

struct Convolution {
  Axis axes[2];  // H, W
  int32_t groups;
  bool transposed;
};

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

/// Every output is the bias plus products in order of input channel, kernel
/// row, kernel column; weights over padding are left out.
template <typename T>
void convolve(const Convolution& conv, const Tensor& input,
              const Tensor& weight, const Tensor* bias, Tensor& out) {
  const Planes x(input, 2);
  const Planes w(weight, 2);
  const Planes y(out, 2);
  const int32_t in_channels = x.size[1] / conv.groups;
  int32_t out_channels = y.size[1] / conv.groups;
  int32_t groups = conv.groups;
  // Strides of the weights by input and by output channel, and by group.
  const int32_t w_in = w.stride[conv.transposed ? 0 : 1];
  int32_t w_next = w.stride[conv.transposed ? 1 : 0];
  const int32_t w_group =
      w.stride[0] * (conv.transposed ? in_channels : out_channels);
  // Depthwise: seen as one group, where every output has an input of its own.
  int32_t x_next = 0;
  if (in_channels == 1 && out_channels == 1) {
    x_next = x.stride[1];
    w_next = w_group;
    out_channels = groups;
    groups = 1;
  }

  // The innermost loop should be long: loops that a kernel of size 1 makes
  // trivial go outside, which leaves the order of the products as it is.
  const bool narrow = w.size[3] == 1;
  const int at_w = narrow ? 0 : 2;
  const int at_h = narrow && w.size[2] != 1 ? 2 : 1;
  const int at_c = 3 - at_w - at_h;
  DotLoops loops;
  loops.count[at_c] = in_channels;
  loops.x_step[at_c] = x.stride[1];
  loops.w_step[at_c] = w_in;

  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t h = 0; h < y.size[2]; ++h) {
      const Taps rows = taps_at(conv.axes[0], h);
      loops.count[at_h] = rows.count;
      loops.x_step[at_h] = rows.in_step * x.stride[2];
      loops.w_step[at_h] = rows.kernel_step * w.stride[2];
      for (int32_t v = 0; v < y.size[3]; ++v) {
        const Taps columns = taps_at(conv.axes[1], v);
        loops.count[at_w] = columns.count;
        loops.x_step[at_w] = columns.in_step * x.stride[3];
        loops.w_step[at_w] = columns.kernel_step * w.stride[3];
        const DotLoops relative = loops.relative();

        const T* x_group = input.data<T>() + n * x.stride[0] +
                           rows.in * x.stride[2] + columns.in * x.stride[3];
        const T* w_first = weight.data<T>() + rows.kernel * w.stride[2] +
                           columns.kernel * w.stride[3];
        T* to = out.mutable_data<T>() + n * y.stride[0] + h * y.stride[2] +
                v * y.stride[3];
        const T* start = bias == nullptr ? nullptr : bias->data<T>();
        for (int32_t g = 0; g < groups; ++g) {
          Dot<T> dot = {x_group, w_first + g * w_group, start, x_next, w_next};
          for (int32_t left = out_channels, block; left > 0; left -= block) {
            block = left >= kDotBlock ? kDotBlock : 1;
            Compute<T> sums[kDotBlock];
            if (block == 1) {
              dot1(dot, &relative, sums);
            } else if (x_next == 0) {
              dot4<T, true>(dot, &relative, sums);
            } else {
              dot4<T, false>(dot, &relative, sums);
            }
            for (int32_t i = 0; i < block; ++i) {
              *to = static_cast<T>(sums[i]);
              to += y.stride[1];
            }
            dot.x += block * x_next;
            dot.w += block * w_next;
            if (dot.start != nullptr) dot.start += block;
          }
          start = dot.start;
          x_group += in_channels * x.stride[1];
        }
      }
    }
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
