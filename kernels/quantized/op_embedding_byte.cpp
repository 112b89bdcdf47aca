#include "orch_selected/op_embedding_byte.h"

#include "embed.h"
#include "orch/kernel.h"

namespace orch::quantized {

// quantized_decomposed::embedding_byte.out(Tensor weight, Tensor weight_scales,
//   Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max,
//   Tensor indices, *, Tensor(a!) out) -> Tensor(a!)
Error embedding_byte_out(const Args& args) {
  return embed<8, selected::quantized_decomposed_embedding_byte_out.bits>(args,
                                                                          6);
}

// quantized_decomposed::embedding_byte.dtype_out(Tensor weight,
//   Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min,
//   int weight_quant_max, Tensor indices, *, ScalarType? dtype=None,
//   Tensor(a!) out) -> Tensor(a!)
Error embedding_byte_dtype_out(const Args& args) {
  return embed_as<8,
                  selected::quantized_decomposed_embedding_byte_dtype_out.bits>(
      args);
}

}  // namespace orch::quantized
