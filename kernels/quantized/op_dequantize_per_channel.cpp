#include "orch_selected/op_dequantize_per_channel.h"

#include "orch/kernel.h"
#include "util/affine.h"
#include "util/check.h"

namespace orch::quantized {

// quantized_decomposed::dequantize_per_channel.out(Tensor input, Tensor scales,
//   Tensor? zero_points, int axis, int quant_min, int quant_max,
//   ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out)
//   -> Tensor(a!)
Error dequantize_per_channel_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& scales = args.tensor(1);
  Tensor& out = args.tensor(8);

  // quant_min and quant_max mean nothing here.
  ORCH_CHECK(args.integer(6) == static_cast<int>(input.dtype),
             Error::InvalidArgument);
  ORCH_CHECK(!args.has(7) || args.integer(7) == static_cast<int>(out.dtype),
             Error::InvalidArgument);
  AffineFn fn;
  ORCH_TRY(find_dequantize<
           selected::quantized_decomposed_dequantize_per_channel_out.bits>(
      input.dtype, out.dtype, fn));
  const AffineTensors tensors = {&scales, args.optional_tensor(2)};
  int axis;
  ORCH_TRY(check_channels(tensors, input, args.integer(3), axis));
  const Tensor& zero_points =
      tensors.zero_points != nullptr ? *tensors.zero_points : scales;
  ORCH_TRY(resize_output(out, input.sizes(), input, scales, zero_points));
  StridedLoop loop = loop_by_channel(out, input, axis);
  for_each_row(loop, input, out, tensors, Affine{}, fn);
  return Error::Ok;
}

}  // namespace orch::quantized
