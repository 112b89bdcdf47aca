#include "convolve.h"
#include "elementwise.h"
#include "orch/kernel.h"
#include "util/check.h"
#include "util/scratch.h"

namespace orch::cortex_m {
namespace {

/// Products of `count` pairs of matrices.
void multiply_all(Convolution& conv, int32_t count, int32_t rows, int32_t depth,
                  int32_t columns) {
  for (; count > 0; --count) {
    multiply(conv, rows, depth, columns);
    conv.x += rows * depth;
    conv.w += columns * depth;
    conv.y += rows * columns;
  }
}

}  // namespace

// cortex_m::quantized_batch_matmul.out(Tensor lhs, int lhs_zero_point,
//   Tensor rhs_transposed, int rhs_zero_point, int output_zero_point,
//   int output_multiplier, int output_shift, Tensor scratch, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// The zero points of the inputs are what is added to them: programs hold them
// with the other sign.
Error quantized_batch_matmul_out(const Args& args) {
  const Tensor& lhs = args.tensor(0);             // [batch, rows, depth]
  const Tensor& rhs_transposed = args.tensor(2);  // [batch, columns, depth]
  const Tensor& scratch = args.tensor(7);
  Tensor& out = args.tensor(8);

  ORCH_CHECK(lhs.dtype == ScalarType::Char &&
                 rhs_transposed.dtype == ScalarType::Char &&
                 out.dtype == ScalarType::Char && lhs.dim == 3 &&
                 rhs_transposed.dim == 3,
             Error::InvalidArgument);
  ORCH_CHECK(
      lhs.contiguous() && rhs_transposed.contiguous() && out.contiguous(),
      Error::NotSupported);
  const int32_t depth = lhs.size(2);
  const int32_t rows = lhs.size(1);
  const int32_t columns = rhs_transposed.size(1);
  ORCH_CHECK(lhs.size(0) == rhs_transposed.size(0) &&
                 depth == rhs_transposed.size(2) && depth > 0,
             Error::InvalidArgument);
  Convolution conv;
  Scale scale;
  ORCH_TRY(read_offset(args, 1, conv.x_offset));
  ORCH_TRY(read_offset(args, 3, conv.w_offset));
  ORCH_TRY(read_item(args, 4, conv.to.offset));
  ORCH_TRY(read_scale(args, 5, scale));
  ORCH_TRY_DATA(check_scratch(scratch, 0));
  const int32_t sizes[] = {lhs.size(0), rows, columns};
  ORCH_TRY(resize_output(out, sizes, lhs, rhs_transposed));
  if (out.numel() == 0) return Error::Ok;

  conv.to.range = {-128, 127};
  conv.to.multipliers = &scale.multiplier;
  conv.to.shifts = &scale.shift;
  conv.to.step = 0;
  conv.x = lhs.data<int8_t>();
  conv.w = rhs_transposed.data<int8_t>();
  conv.bias = nullptr;
  conv.y = out.mutable_data<int8_t>();
  multiply_all(conv, sizes[0], rows, depth, columns);
  return Error::Ok;
}

/// `input` and `weights` are as many matrices as a batch has images.
void quantized_batch_matmul(const PreparedCall& prepared) {
  Convolution conv =
      convolution_of(static_cast<const ConvolutionCall&>(prepared));
  multiply_all(conv, conv.in.batch, conv.in.width, conv.in.channels,
               conv.out.channels);
}

}  // namespace orch::cortex_m
