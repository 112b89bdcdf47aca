#include "orch_selected/op_bitwise_xor.h"

#include "orch/kernel.h"
#include "util/bitwise.h"

namespace orch::portable {

// aten::bitwise_xor.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_xor_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_xor_Scalar_out;
  return bitwise_with_number<kDtypes.bits>(
      args, [](auto a, auto b) { return a ^ b; });
}

// aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_xor_Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_xor_Tensor_out;
  return bitwise_with_items<kDtypes.bits>(args,
                                          [](auto a, auto b) { return a ^ b; });
}

}  // namespace orch::portable
