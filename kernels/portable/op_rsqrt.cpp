#include "orch_selected/op_rsqrt.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::rsqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error rsqrt_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_rsqrt_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return 1 / math::sqrt(x); }));
}

}  // namespace orch::portable
