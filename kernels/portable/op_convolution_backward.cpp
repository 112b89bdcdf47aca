#include "orch_selected/op_convolution_backward.h"

#include "convolve.h"
#include "orch/kernel.h"
#include "read_convolution.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

/// The gradient of the input: a convolution of that of the output, transposed
/// if the other is not, with the same weights.
template <typename T>
void input_gradient(Convolution conv, const Tensor& grad_output,
                    const Tensor& weight, Tensor& grad_input) {
  conv.transposed = !conv.transposed;
  for (Axis& axis : conv.axes) {
    const int32_t in = axis.in;
    axis.in = axis.out;
    axis.out = in;
  }
  const TensorFilters filters(conv, grad_output, weight, grad_input);
  const T* const none = nullptr;
  convolve_plain(filters, filters.volumes, AnyTaps{conv.transposed}, AnyDots{},
                 grad_output.data<T>(), weight.data<T>(), none,
                 grad_input.mutable_data<T>());
}

/// Positions i of the smaller tensor, the output or the input of a transposed
/// convolution, where weight k meets item i * stride - padding + k * dilation
/// of the larger one.
struct Meetings {
  int32_t first;
  int32_t count;
  int32_t at;  // in the larger tensor, of the first

  Meetings(const Axis& axis, bool transposed, int32_t k) {
    const int32_t small = transposed ? axis.in : axis.out;
    const int32_t large = transposed ? axis.out : axis.in;
    const int32_t offset = k * axis.dilation - axis.padding;
    first = offset < 0 ? (axis.stride - 1 - offset) / axis.stride : 0;
    int32_t end = offset < large ? (large - 1 - offset) / axis.stride + 1 : 0;
    if (end > small) end = small;
    count = end > first ? end - first : 0;
    at = count == 0 ? 0 : first * axis.stride + offset;
  }
};

/// The gradient of the weights: products by image, row, column of the smaller
/// tensor; in volumes, all of one depth after the other.
template <typename T>
void weight_gradient(const Convolution& conv, const Tensor& grad_output,
                     const Tensor& input, Tensor& grad_weight) {
  const Tensor& small_tensor = conv.transposed ? input : grad_output;
  const Tensor& large_tensor = conv.transposed ? grad_output : input;
  const Planes small(small_tensor, 2);
  const Planes large(large_tensor, 2);
  const Planes w(grad_weight, 2);
  const int32_t group = small.size[1] / conv.groups;
  DotLoops loops;
  loops.count[0] = small.size[0];
  loops.x_step[0] = small.stride[0];
  loops.w_step[0] = large.stride[0];
  for (int i = 1; i < 3; ++i) {
    loops.x_step[i] = small.stride[i + 1];
    loops.w_step[i] = large.stride[i + 1] * conv.axes[i].stride;
  }
  const int32_t large_image = conv.axes[0].stride * large.depth_stride;
  for (int32_t d = 0; d < conv.axes[0].kernel; ++d) {
    const Meetings images(conv.axes[0], conv.transposed, d);
    for (int32_t h = 0; h < conv.axes[1].kernel; ++h) {
      const Meetings rows(conv.axes[1], conv.transposed, h);
      loops.count[1] = rows.count;
      for (int32_t v = 0; v < conv.axes[2].kernel; ++v) {
        const Meetings columns(conv.axes[2], conv.transposed, v);
        loops.count[2] = columns.count;
        const DotLoops relative = loops.relative();
        const int32_t x_first = images.first * small.depth_stride +
                                rows.first * small.stride[2] +
                                columns.first * small.stride[3];
        const int32_t w_first = images.at * large.depth_stride +
                                rows.at * large.stride[2] +
                                columns.at * large.stride[3];
        for (int32_t a = 0; a < w.size[0]; ++a) {
          Dot<T> dot = {small_tensor.data<T>() + x_first + a * small.stride[1],
                        large_tensor.data<T>() + w_first +
                            a / group * w.size[1] * large.stride[1],
                        nullptr, 0, large.stride[1]};
          T* to = grad_weight.mutable_data<T>() + a * w.stride[0] +
                  d * w.depth_stride + h * w.stride[2] + v * w.stride[3];
          for (int32_t left = w.size[1], block; left > 0; left -= block) {
            block = left >= kDotBlock ? kDotBlock : 1;
            Compute<T> sums[kDotBlock] = {};
            Dot<T> image = dot;
            for (int32_t n = 0; n < images.count; ++n) {
              Compute<T> next[kDotBlock];
              AnyDots::of(image, relative, block, next);
              for (int32_t i = 0; i < block; ++i) sums[i] += next[i];
              image.x += small.depth_stride;
              image.w += large_image;
            }
            for (int32_t i = 0; i < block; ++i) {
              *to = static_cast<T>(sums[i]);
              to += w.stride[1];
            }
            dot.w += block * large.stride[1];
          }
        }
      }
    }
  }
}

/// The gradient of the bias: sums by channel.
template <typename T>
void bias_gradient(const Tensor& grad_output, Tensor& grad_bias) {
  const Strides from(grad_output);
  StridedLoop loop;
  for (int d = 0; d < grad_output.dim; ++d) {
    if (d != 1) loop.add(grad_output.size(d), from[d], 0);
  }
  for (int32_t c = 0; c < grad_output.size(1); ++c) {
    Compute<T> sum = 0;
    StridedLoop rows = loop;
    for (; rows.valid(); rows.next()) {
      const T* item = grad_output.data<T>() + c * from[1] + rows.offset(0);
      for (int32_t i = rows.row_size(); i != 0; --i) {
        sum += static_cast<Compute<T>>(*item);
        item += rows.row_stride(0);
      }
    }
    grad_bias.mutable_data<T>()[c] = static_cast<T>(sum);
  }
}

/// Gives an output the sizes of the tensor that it is the gradient of. Errors:
/// InvalidArgument, ShapeTooLarge.
Error prepare(const Args& args, int index, Span<const int32_t> sizes) {
  Tensor& out = args.tensor(index);
  ORCH_CHECK(out.dtype == args.tensor(1).dtype, Error::InvalidArgument);
  return resize_output(out, sizes, args.tensor(0), args.tensor(1),
                       args.tensor(2));
}

}  // namespace

// aten::convolution_backward.out(Tensor grad_output, Tensor input,
//   Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding,
//   SymInt[] dilation, bool transposed, SymInt[] output_padding,
//   SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1,
//   Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// Gradients that are not in the mask are left as they are.
Error convolution_backward_out(const Args& args) {
  const Tensor& grad_output = args.tensor(0);
  const Tensor& input = args.tensor(1);
  const Tensor& weight = args.tensor(2);
  const List& mask = args.value(10).list();

  Convolution conv;
  int32_t sizes[kMaxDim];
  ORCH_CHECK(grad_output.dtype == input.dtype && mask.count == 3,
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_convolution_backward_out;
  ORCH_CHECK(kDtypes.has(input.dtype), Error::DtypeNotSelected);
  ORCH_TRY(read_convolution(args, 1, conv, sizes));
  ORCH_CHECK(grad_output.dim == input.dim, Error::InvalidArgument);
  for (int d = 0; d < input.dim; ++d) {
    ORCH_CHECK(grad_output.size(d) == sizes[d], Error::InvalidArgument);
  }
  const uint8_t* const wanted = static_cast<const uint8_t*>(mask.items);
  const Span<const int32_t> gradients[] = {
      input.sizes(), weight.sizes(), {sizes + 1, 1}};
  if (args.has(3) && wanted[2] != 0) {
    const IntList bias = args.int_list(3);
    ORCH_CHECK(bias.size() == 1 && bias[0] == sizes[1], Error::InvalidArgument);
  }
  for (int i = 0; i < 3; ++i) {
    if (wanted[i] != 0) ORCH_TRY(prepare(args, 11 + i, gradients[i]));
  }
  // Outputs may share their sizes.
  for (int i = 0; i < 3; ++i) {
    const Span<const int32_t> own = args.tensor(11 + i).sizes();
    for (size_t d = 0; wanted[i] != 0 && d < own.size(); ++d) {
      ORCH_CHECK(own[d] == gradients[i][d], Error::InvalidArgument);
    }
  }
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (wanted[0] != 0) {
      input_gradient<T>(conv, grad_output, weight, args.tensor(11));
    }
    if (wanted[1] != 0) {
      weight_gradient<T>(conv, grad_output, input, args.tensor(12));
    }
    if (wanted[2] != 0) bias_gradient<T>(grad_output, args.tensor(13));
    return Error::Ok;
  });
}

}  // namespace orch::portable
