#include "orch_selected/op_acosh.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::acosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error acosh_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_acosh_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return math::acosh(x); }));
}

}  // namespace orch::portable
