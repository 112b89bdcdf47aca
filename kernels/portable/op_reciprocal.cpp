#include "orch_selected/op_reciprocal.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::reciprocal.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error reciprocal_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_reciprocal_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return 1 / x; }));
}

}  // namespace orch::portable
