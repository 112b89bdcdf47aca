#include "orch_selected/op_asin.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::asin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error asin_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_asin_out;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1),
      of_lanes(Type<float>{}, [](auto x) { return math::asin(x); }));
}

}  // namespace orch::portable
