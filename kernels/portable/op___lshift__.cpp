#include "orch_selected/op___lshift__.h"

#include "orch/kernel.h"
#include "util/bitwise.h"

namespace orch::portable {

// aten::__lshift__.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error __lshift___Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten___lshift___Scalar_out;
  return bitwise_with_number<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_left(a, b); });
}

// aten::__lshift__.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error __lshift___Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten___lshift___Tensor_out;
  return bitwise_with_items<kDtypes.bits>(
      args, [](auto a, auto b) { return shift_left(a, b); });
}

}  // namespace orch::portable
