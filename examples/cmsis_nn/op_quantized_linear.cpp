#include "adapter.h"
#include "arm_nnsupportfunctions.h"
#include "util/check.h"

namespace cmsis_adapter {
namespace {

struct Linear {
  int32_t rows;
  int32_t depth;
  int32_t outputs;
  const int8_t* x;
  const int8_t* w;
  int8_t* y;
  cmsis_nn_fc_params params;
  int32_t multiplier;
  int32_t shift;
};

/// `count` outputs from `first` on. Code for MVE takes sums and no bias, all
/// other code a bias and no sums.
Error multiply(const Linear& linear, int32_t first, int32_t count,
               const int32_t* sums, const int32_t* bias) {
  for (int32_t row = 0; row < linear.rows; ++row) {
    ORCH_TRY(to_error(arm_nn_vec_mat_mult_t_s8(
        linear.x + row * linear.depth, linear.w + first * linear.depth, sums,
        bias, linear.y + row * linear.outputs + first,
        linear.params.input_offset, linear.params.output_offset,
        linear.multiplier, linear.shift, linear.depth, count,
        linear.params.activation.min, linear.params.activation.max, 1,
        linear.params.filter_offset)));
  }
  return Error::Ok;
}

#if defined(ARM_MATH_MVEI)

/// Outputs whose sums are computed together where the program has none.
constexpr int32_t kBlock = 40;

/// The program was exported for a core without MVE: its bias is no sum yet.
Error multiply_with_bias(const Linear& linear, const int32_t* bias) {
  int32_t sums[kBlock];
  for (int32_t first = 0; first < linear.outputs; first += kBlock) {
    const int32_t left = linear.outputs - first;
    const int32_t count = left < kBlock ? left : kBlock;
    ORCH_TRY(to_error(arm_vector_sum_s8(
        sums, linear.depth, count, linear.w + first * linear.depth,
        linear.params.input_offset, linear.params.filter_offset,
        bias == nullptr ? nullptr : bias + first)));
    ORCH_TRY(multiply(linear, first, count, sums, nullptr));
  }
  return Error::Ok;
}

Error multiply_with_sums(const Linear& linear, const int32_t* sums) {
  return multiply(linear, 0, linear.outputs, sums, nullptr);
}

#else

Error multiply_with_bias(const Linear& linear, const int32_t* bias) {
  return multiply(linear, 0, linear.outputs, nullptr, bias);
}

/// The program was exported for MVE. Its sums hold the bias and what the input
/// offset adds: without that offset they are the bias.
Error multiply_with_sums(Linear& linear, const int32_t* sums) {
  linear.params.input_offset = 0;
  return multiply(linear, 0, linear.outputs, nullptr, sums);
}

#endif

}  // namespace

// cortex_m::quantized_linear.out(Tensor input, Tensor weights, Tensor? bias,
//   Tensor? kernel_sum, int input_offset, int filter_offset,
//   int output_offset, int[] requantize_multipliers, int[] requantize_shifts,
//   int activation_max, int activation_min, *, Tensor(a!) out) -> Tensor(a!)
//
// Every program is right on every core, whatever it was exported for.
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
  Linear linear;
  linear.depth = weights.size(1);
  linear.outputs = weights.size(0);
  ORCH_CHECK(input.size(input.dim - 1) == linear.depth && linear.depth > 0 &&
                 (bias == nullptr || is_per_channel(*bias, linear.outputs)) &&
                 (kernel_sum == nullptr ||
                  is_per_channel(*kernel_sum, linear.outputs)),
             Error::InvalidArgument);
  Range range;
  ORCH_TRY(read_offset(args, 4, linear.params.input_offset));
  ORCH_TRY(read_offset(args, 5, linear.params.filter_offset));
  ORCH_TRY(read_item(args, 6, linear.params.output_offset));
  ORCH_TRY(read_first(args, 7, linear.multiplier));
  ORCH_TRY(read_first(args, 8, linear.shift));
  ORCH_TRY(read_range(args, 10, 9, range));
  linear.params.activation = {range.low, range.high};

  int32_t sizes[kMaxDim];
  for (int i = 0; i < input.dim; ++i) sizes[i] = input.size(i);
  sizes[input.dim - 1] = linear.outputs;
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input, weights));
  linear.rows = input.numel() / linear.depth;
  linear.x = input.data<int8_t>();
  linear.w = weights.data<int8_t>();
  linear.y = out.mutable_data<int8_t>();
  if (kernel_sum != nullptr) {
    return multiply_with_sums(linear, kernel_sum->data<int32_t>());
  }
  return multiply_with_bias(linear, int_data(bias));
}

}  // namespace cmsis_adapter
