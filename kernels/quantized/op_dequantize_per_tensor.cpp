#include "orch_selected/op_dequantize_per_tensor.h"

#include "orch/kernel.h"
#include "util/affine.h"
#include "util/check.h"

namespace orch::quantized {
namespace {

/// Checks the dtypes that arguments 5 and 6 name: of input and, unless it is
/// None, of the output. quant_min and quant_max mean nothing here.
Error check_dtypes(const Args& args, const Tensor& input, const Tensor& out) {
  ORCH_CHECK(args.integer(5) == static_cast<int>(input.dtype),
             Error::InvalidArgument);
  ORCH_CHECK(!args.has(6) || args.integer(6) == static_cast<int>(out.dtype),
             Error::InvalidArgument);
  return Error::Ok;
}

}  // namespace

// quantized_decomposed::dequantize_per_tensor.out(Tensor input, float scale,
//   int zero_point, int quant_min, int quant_max, ScalarType dtype, *,
//   ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)
Error dequantize_per_tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(7);

  ORCH_TRY(check_dtypes(args, input, out));
  AffineFn fn;
  ORCH_TRY(find_dequantize<
           selected::quantized_decomposed_dequantize_per_tensor_out.bits>(
      input.dtype, out.dtype, fn));
  Affine affine;
  affine.scale = static_cast<float>(args.real(1));
  ORCH_TRY(read_zero_point(args.integer(2), affine));
  ORCH_TRY(resize(out, input.sizes()));
  StridedLoop loop = loop_over(out, input);
  for_each_row(loop, input, out, affine, fn);
  return Error::Ok;
}

// quantized_decomposed::dequantize_per_tensor.Tensor_out(Tensor input,
//   Tensor scale, Tensor zero_point, int quant_min, int quant_max,
//   ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out)
//   -> Tensor(a!)
Error dequantize_per_tensor_Tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& scale = args.tensor(1);
  const Tensor& zero_point = args.tensor(2);
  Tensor& out = args.tensor(7);

  ORCH_TRY(check_dtypes(args, input, out));
  AffineFn fn;
  ORCH_TRY(
      find_dequantize<
          selected::quantized_decomposed_dequantize_per_tensor_Tensor_out.bits>(
          input.dtype, out.dtype, fn));
  const AffineTensors tensors = {&scale, &zero_point};
  ORCH_TRY(tensors.check());
  ORCH_CHECK(scale.numel() == 1 && zero_point.numel() == 1,
             Error::InvalidArgument);
  ORCH_TRY(resize_output(out, input.sizes(), input, scale, zero_point));
  Affine affine;
  tensors.load(0, affine);
  StridedLoop loop = loop_over(out, input);
  for_each_row(loop, input, out, affine, fn);
  return Error::Ok;
}

// Prepared: items side by side, of the dtypes that models have.
void dequantize_byte(const PreparedCall& call) {
  dequantize_all<uint8_t>(call);
}

void dequantize_char(const PreparedCall& call) { dequantize_all<int8_t>(call); }

void dequantize_short(const PreparedCall& call) {
  dequantize_all<int16_t>(call);
}

#if ORCH_FLOAT_VECTORS
void dequantize_char_vectors(const PreparedCall& call) {
  dequantize_vector_items(call);
}
#endif

}  // namespace orch::quantized
