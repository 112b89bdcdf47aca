#include "orch_selected/op_atan2.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/binary.h"

namespace orch::portable {

// aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error atan2_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_atan2_out;
  return binary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1), args.tensor(2),
      [](auto y, auto x) { return math::atan2(y, x); });
}

}  // namespace orch::portable
