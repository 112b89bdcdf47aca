#include "convolve.h"
#include "orch/kernel.h"
#include "util/check.h"

namespace orch::cortex_m_int16 {
namespace {

/// Gives `out` the sizes of `input`, but `outputs` in the last dimension.
/// Errors: those of `resize_output`.
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
// Zero points are 0, so there is nothing for kernel_sum to hold but a bias.
Error quantized_linear_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weights = args.tensor(1);  // [out, in]
  const Tensor* bias = args.optional_tensor(2);
  Tensor& out = args.tensor(11);

  ORCH_CHECK(input.dtype == ScalarType::Short &&
                 weights.dtype == ScalarType::Char &&
                 out.dtype == ScalarType::Short && input.dim > 0 &&
                 weights.dim == 2 && args.optional_tensor(3) == nullptr,
             Error::InvalidArgument);
  ORCH_CHECK(input.contiguous() && weights.contiguous() && out.contiguous(),
             Error::NotSupported);
  const int32_t depth = weights.size(1);
  const int32_t outputs = weights.size(0);
  ORCH_CHECK(input.size(input.dim - 1) == depth && depth > 0,
             Error::InvalidArgument);

  Convolution conv;
  ORCH_TRY(read_bias(bias, outputs, conv.bias));
  ORCH_TRY(read_zero(args, 4));
  ORCH_TRY(read_zero(args, 5));
  ORCH_TRY(read_zero(args, 6));
  int32_t multiplier;
  int32_t shift;
  ORCH_TRY(cortex_m::read_first(args, 7, multiplier));
  ORCH_TRY(cortex_m::read_first(args, 8, shift));
  ORCH_CHECK(cortex_m::is_shift(shift), Error::InvalidArgument);
  ORCH_TRY(read_limits(args, 10, 9, conv.range));

  ORCH_TRY(resize_rows(input, weights, outputs, out));
  conv.multipliers = &multiplier;
  conv.shifts = &shift;
  conv.scale_step = 0;
  conv.x = input.data<int16_t>();
  conv.w = weights.data<int8_t>();
  conv.y = out.mutable_data<int16_t>();
  multiply(conv, input.numel() / depth, depth, outputs);
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
