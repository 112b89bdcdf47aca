#include "orch_selected/op_sub.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/number.h"
#include "util/scalar.h"

namespace orch::portable {

// aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
//   -> Tensor(a!)
Error sub_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_sub_out;
  return binary_scaled<kDtypes.bits, (kReal | kComplex).bits>(
      args, [](auto a, auto alpha_b) { return a - alpha_b; });
}

// aten::sub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error sub_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_sub_Scalar_out;
  return with_scaled_number<kDtypes.bits, kReal.bits>(
      args,
      [](auto item, auto number, auto alpha) { return item - alpha * number; });
}

}  // namespace orch::portable
