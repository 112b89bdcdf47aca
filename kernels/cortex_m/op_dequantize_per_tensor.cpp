#include "orch_selected/op_dequantize_per_tensor.h"

#include "isa.h"
#include "orch/kernel.h"
#include "util/affine.h"
#include "util/check.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "affine_mve.h"
#endif

namespace orch::cortex_m {

// cortex_m::dequantize_per_tensor.out(Tensor input, float scale,
//   int zero_point, int quant_min, int quant_max, ScalarType dtype, *,
//   Tensor(a!) out) -> Tensor(a!)
Error dequantize_per_tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(6);

  ORCH_CHECK(args.integer(5) == static_cast<int>(input.dtype),
             Error::InvalidArgument);
  AffineFn fn;
  ORCH_TRY(find_dequantize<selected::cortex_m_dequantize_per_tensor_out.bits>(
      input.dtype, out.dtype, fn));
#if ORCH_ISA == ORCH_ISA_MVE
  if (input.dtype == ScalarType::Char && out.dtype == ScalarType::Float) {
    fn = dequantize_vectors;
  }
#endif
  Affine affine;
  affine.scale = static_cast<float>(args.number(1));
  ORCH_TRY(read_zero_point(args.integer(2), affine));
  ORCH_TRY(read_limits(args.integer(3), args.integer(4), input.dtype, affine));
  ORCH_TRY(resize(out, input.sizes()));
  StridedLoop loop = loop_over(out, input);
  for_each_row(loop, input, out, affine, fn);
  return Error::Ok;
}

}  // namespace orch::cortex_m
