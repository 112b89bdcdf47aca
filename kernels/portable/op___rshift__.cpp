#include "orch_selected/op___rshift__.h"

#include "orch/kernel.h"
#include "util/bitwise.h"

namespace orch::portable {

// aten::__rshift__.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error __rshift___Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten___rshift___Scalar_out;
  return bitwise_with_number<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_right(a, b); });
}

// aten::__rshift__.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error __rshift___Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten___rshift___Tensor_out;
  return bitwise_with_items<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_right(a, b); });
}

}  // namespace orch::portable
