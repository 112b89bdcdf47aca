#include "orch_selected/op_rsub.h"

#include "orch/kernel.h"
#include "util/number.h"

namespace orch::portable {

// aten::rsub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error rsub_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_rsub_Scalar_out;
  return with_scaled_number<kDtypes.bits, kReal.bits>(
      args,
      [](auto item, auto number, auto alpha) { return number - alpha * item; });
}

}  // namespace orch::portable
