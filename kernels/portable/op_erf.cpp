#include "orch_selected/op_erf.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error erf_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_erf_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return math::erf(x); }));
}

}  // namespace orch::portable
