#include "orch_selected/op_bitwise_or.h"

#include "orch/kernel.h"
#include "util/bitwise.h"

namespace orch::portable {

// aten::bitwise_or.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_or_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_or_Scalar_out;
  return bitwise_with_number<kDtypes.bits>(
      args, [](auto a, auto b) { return a | b; });
}

// aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_or_Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_or_Tensor_out;
  return bitwise_with_items<kDtypes.bits>(args,
                                          [](auto a, auto b) { return a | b; });
}

}  // namespace orch::portable
