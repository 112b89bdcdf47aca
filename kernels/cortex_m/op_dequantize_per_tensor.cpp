#include "orch_selected/op_dequantize_per_tensor.h"

#include "affine.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

// cortex_m::dequantize_per_tensor.out(Tensor input, float scale,
//   int zero_point, int quant_min, int quant_max, ScalarType dtype, *,
//   Tensor(a!) out) -> Tensor(a!)
Error dequantize_per_tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(6);

  Affine affine;
  ORCH_CHECK(out.dtype == ScalarType::Float, Error::InvalidArgument);
  ORCH_TRY(read_affine(args, input.dtype, affine));
  ORCH_TRY(prepare_items(input, out));
  constexpr DtypeSet kDtypes{selected::cortex_m_dequantize_per_tensor_out.bits};
  return switch_dtype<(kDtypes & kItems).bits>(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    dequantize_row<T, float>({input.memory, out.memory, 1, 1, out.numel()},
                             affine);
    return Error::Ok;
  });
}

// Prepared: items side by side, of the dtypes that models have.
void dequantize_char(const PreparedCall& call) { dequantize_all<int8_t>(call); }

void dequantize_short(const PreparedCall& call) {
  dequantize_all<int16_t>(call);
}

#if ORCH_FLOAT_VECTORS
void dequantize_char_vectors(const PreparedCall& call) {
  dequantize_vector_items(call);
}
#endif

}  // namespace orch::cortex_m
