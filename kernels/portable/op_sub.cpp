#include "orch_selected/op_sub.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/scalar.h"

namespace orch::portable {

// aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
//   -> Tensor(a!)
Error sub_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_sub_out;
  return binary_scaled<kDtypes.bits, kReal.bits>(
      args, [](auto a, auto alpha_b) { return a - alpha_b; });
}

}  // namespace orch::portable
