#include "orch_selected/op_bitwise_right_shift.h"

#include "orch/kernel.h"
#include "util/bitwise.h"

namespace orch::portable {

// aten::bitwise_right_shift.Tensor_Scalar_out(Tensor self, Scalar other, *,
// Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_right_shift_Tensor_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes =
      selected::aten_bitwise_right_shift_Tensor_Scalar_out;
  return bitwise_with_number<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_right(a, b); });
}

// aten::bitwise_right_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!)
// out)
//   -> Tensor(a!)
Error bitwise_right_shift_Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_right_shift_Tensor_out;
  return bitwise_with_items<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_right(a, b); });
}

}  // namespace orch::portable
