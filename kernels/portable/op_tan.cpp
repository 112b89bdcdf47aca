#include "orch_selected/op_tan.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::tan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error tan_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_tan_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return math::tan(x); }));
}

}  // namespace orch::portable
