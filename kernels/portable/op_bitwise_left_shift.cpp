#include "orch_selected/op_bitwise_left_shift.h"

#include "orch/kernel.h"
#include "util/bitwise.h"

namespace orch::portable {

// aten::bitwise_left_shift.Tensor_Scalar_out(Tensor self, Scalar other, *,
// Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_left_shift_Tensor_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes =
      selected::aten_bitwise_left_shift_Tensor_Scalar_out;
  return bitwise_with_number<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_left(a, b); });
}

// aten::bitwise_left_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!)
// out)
//   -> Tensor(a!)
Error bitwise_left_shift_Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_left_shift_Tensor_out;
  return bitwise_with_items<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_left(a, b); });
}

}  // namespace orch::portable
