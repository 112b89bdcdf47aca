#include "orch_selected/op_floor_divide.h"

#include "orch/kernel.h"
#include "util/divide.h"

namespace orch::portable {

// aten::floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error floor_divide_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(2);

  constexpr DtypeSet kDtypes = selected::aten_floor_divide_out;
  ScalarType common;
  ORCH_TRY(prepare_binary<kDtypes.bits>(self, other, out, common));
  ORCH_TRY_DATA(check_divisors<kDtypes.bits>(common, self, other));
  return divide_items<kDtypes.bits>(
      common, self, other, out,
      [](auto a, auto b) { return divide_floor(a, b); });
}

}  // namespace orch::portable
