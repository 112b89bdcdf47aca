#include "convolve.h"
#include "orch/kernel.h"
#include "util/check.h"

namespace orch::cortex_m {
namespace {

/// Gives `out` the sizes of `input`, but `outputs` in the last dimension.
/// Errors: those of `resize_output`. Not inlined, as calls below need no
/// `sizes` on the stack.
__attribute__((noinline)) Error resize_rows(const Tensor& input,
                                            const Tensor& weights,
                                            int32_t outputs, Tensor& out) {
  int32_t sizes[kMaxDim];
  for (int i = 0; i < input.dim; ++i) sizes[i] = input.size(i);
  sizes[input.dim - 1] = outputs;
  return resize_output(out, {sizes, input.dim}, input, weights);
}

}  // namespace

// cortex_m::quantized_linear.out(Tensor input, Tensor weights, Tensor? bias,
//   Tensor? kernel_sum, int input_offset, int filter_offset,
//   int output_offset, int[] requantize_multipliers, int[] requantize_shifts,
//   int activation_max, int activation_min, *, Tensor(a!) out) -> Tensor(a!)
//
// kernel_sum is what programs for MVE have in place of a bias: it holds the
// bias and the part of the input offset in every sum.
Error quantized_linear_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weights = args.tensor(1);  // [out, in]
  const Tensor* bias = args.optional_tensor(2);
  const Tensor* kernel_sum = args.optional_tensor(3);
  Tensor& out = args.tensor(11);

  ORCH_CHECK(
      input.dtype == ScalarType::Char && weights.dtype == ScalarType::Char &&
          out.dtype == ScalarType::Char && input.dim > 0 && weights.dim == 2,
      Error::InvalidArgument);
  ORCH_CHECK(input.contiguous() && weights.contiguous() && out.contiguous(),
             Error::NotSupported);
  const int32_t depth = weights.size(1);
  const int32_t outputs = weights.size(0);
  ORCH_CHECK(input.size(input.dim - 1) == depth && depth > 0,
             Error::InvalidArgument);
  const Tensor* added = kernel_sum != nullptr ? kernel_sum : bias;
  ORCH_CHECK(added == nullptr || is_per_channel(*added, outputs),
             Error::InvalidArgument);

  Convolution conv;
  int32_t multiplier;
  int32_t shift;
  ORCH_TRY(read_offset(args, 4, conv.x_offset));
  ORCH_TRY(read_offset(args, 5, conv.w_offset));
  ORCH_TRY(read_item(args, 6, conv.to.offset));
  ORCH_TRY(read_first(args, 7, multiplier));
  ORCH_TRY(read_first(args, 8, shift));
  ORCH_CHECK(is_shift(shift), Error::InvalidArgument);
  ORCH_TRY(read_range(args, 10, 9, conv.to.range));
  if (kernel_sum != nullptr) conv.x_offset = 0;

  ORCH_TRY(resize_rows(input, weights, outputs, out));
  conv.to.multipliers = &multiplier;
  conv.to.shifts = &shift;
  conv.to.step = 0;
  conv.x = input.data<int8_t>();
  conv.w = weights.data<int8_t>();
  conv.bias = added == nullptr ? nullptr : added->data<int32_t>();
  conv.y = out.mutable_data<int8_t>();
  multiply(conv, input.numel() / depth, depth, outputs);
  return Error::Ok;
}

void quantized_linear(const PreparedCall& call) {
  multiply(static_cast<const ConvolutionCall&>(call));
}

}  // namespace orch::cortex_m
