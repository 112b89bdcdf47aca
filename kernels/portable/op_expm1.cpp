#include "orch_selected/op_expm1.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::expm1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error expm1_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_expm1_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return math::expm1(x); }));
}

}  // namespace orch::portable
