#include "orch_selected/op_dequantize_per_token.h"

#include "orch/kernel.h"
#include "util/affine.h"
#include "util/check.h"

namespace orch::quantized {

// quantized_decomposed::dequantize_per_token.out(Tensor input, Tensor scales,
//   Tensor zero_points, int quant_min, int quant_max, ScalarType dtype,
//   ScalarType output_dtype, *, Tensor(a!) out) -> Tensor(a!)
Error dequantize_per_token_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& scales = args.tensor(1);
  const Tensor& zero_points = args.tensor(2);
  Tensor& out = args.tensor(7);

  // quant_min and quant_max mean nothing here.
  ORCH_CHECK(args.integer(5) == static_cast<int>(input.dtype) &&
                 args.integer(6) == static_cast<int>(out.dtype),
             Error::InvalidArgument);
  AffineFn fn;
  ORCH_TRY(find_dequantize<
           selected::quantized_decomposed_dequantize_per_token_out.bits>(
      input.dtype, out.dtype, fn));
  const AffineTensors tensors = {&scales, &zero_points};
  ORCH_TRY(check_tokens(tensors, input));
  ORCH_TRY(resize_output(out, input.sizes(), input, scales, zero_points));
  StridedLoop loop = loop_by_token(out, input, scales);
  for_each_row(loop, input, out, tensors, Affine{}, fn);
  return Error::Ok;
}

}  // namespace orch::quantized
