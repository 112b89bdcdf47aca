#include "orch_selected/op_embedding_2bit.h"

#include "embed.h"
#include "orch/kernel.h"

namespace orch::quantized {

// quantized_decomposed::embedding_2bit.out(Tensor weight, Tensor weight_scales,
//   Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max,
//   Tensor indices, *, Tensor(a!) out) -> Tensor(a!)
Error embedding_2bit_out(const Args& args) {
  return embed<2, selected::quantized_decomposed_embedding_2bit_out.bits>(args,
                                                                          6);
}

// quantized_decomposed::embedding_2bit.dtype_out(Tensor weight,
//   Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min,
//   int weight_quant_max, Tensor indices, ScalarType? dtype=None, *,
//   Tensor(a!) out) -> Tensor(a!)
Error embedding_2bit_dtype_out(const Args& args) {
  return embed_as<2,
                  selected::quantized_decomposed_embedding_2bit_dtype_out.bits>(
      args);
}

}  // namespace orch::quantized
