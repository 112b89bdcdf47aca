#include "orch_selected/op_quantize_per_tensor.h"

#include "affine.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

// cortex_m::quantize_per_tensor.out(Tensor input, float scale, int zero_point,
//   int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out)
//   -> Tensor(a!)
Error quantize_per_tensor_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(6);

  Affine affine;
  ORCH_CHECK(input.dtype == ScalarType::Float, Error::InvalidArgument);
  ORCH_TRY(read_affine(args, out.dtype, affine));
  ORCH_TRY(prepare_items(input, out));
  constexpr DtypeSet kDtypes{selected::cortex_m_quantize_per_tensor_out.bits};
  return switch_dtype<(kDtypes & kItems).bits>(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    quantize_row<float, T>({input.memory, out.memory, 1, 1, out.numel()},
                           affine);
    return Error::Ok;
  });
}

// Prepared: items side by side, of the dtypes that models have.
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

}  // namespace orch::cortex_m
