#include "orch_selected/op_quantize_per_tensor.h"

#include "orch/kernel.h"
#include "util/affine.h"
#include "util/check.h"

namespace orch::quantized {

// quantized_decomposed::quantize_per_tensor.out(Tensor input, float scale,
//   int zero_point, int quant_min, int quant_max, ScalarType dtype, *,
//   Tensor(a!) out) -> Tensor(a!)
Error quantize_per_tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(6);

  AffineFn fn;
  ORCH_TRY(find_quantize<selected::quantized_decomposed_quantize_per_tensor_out
                             .bits>(input.dtype, out.dtype, fn));
  Affine affine;
  ORCH_TRY(read_affine(args, out.dtype, affine));
  ORCH_TRY(resize(out, input.sizes()));
  StridedLoop loop = loop_over(out, input);
  for_each_row(loop, input, out, affine, fn);
  return Error::Ok;
}

// quantized_decomposed::quantize_per_tensor.Tensor_out(Tensor input,
//   Tensor scale, Tensor zero_point, int quant_min, int quant_max,
//   ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)
Error quantize_per_tensor_Tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& scale = args.tensor(1);
  const Tensor& zero_point = args.tensor(2);
  Tensor& out = args.tensor(6);

  ORCH_CHECK(args.integer(5) == static_cast<int>(out.dtype),
             Error::InvalidArgument);
  AffineFn fn;
  ORCH_TRY(find_quantize<
           selected::quantized_decomposed_quantize_per_tensor_Tensor_out.bits>(
      input.dtype, out.dtype, fn));
  const AffineTensors tensors = {&scale, &zero_point};
  ORCH_TRY(tensors.check());
  ORCH_CHECK(scale.numel() == 1 && zero_point.numel() == 1,
             Error::InvalidArgument);
  Affine affine;
  ORCH_TRY(read_limits(args.integer(3), args.integer(4), out.dtype, affine));
  ORCH_TRY(resize_output(out, input.sizes(), input, scale, zero_point));
  tensors.load(0, affine);
  StridedLoop loop = loop_over(out, input);
  for_each_row(loop, input, out, affine, fn);
  return Error::Ok;
}

// Prepared: items side by side, of the dtypes that models have.
void quantize_byte(const PreparedCall& call) {
  quantize_near_items<uint8_t>(call);
}

void quantize_char(const PreparedCall& call) {
  quantize_near_items<int8_t>(call);
}

void quantize_short(const PreparedCall& call) {
  quantize_near_items<int16_t>(call);
}

#if ORCH_FLOAT_VECTORS
void quantize_char_vectors(const PreparedCall& call) {
  quantize_vector_items(call);
}
#endif

}  // namespace orch::quantized
