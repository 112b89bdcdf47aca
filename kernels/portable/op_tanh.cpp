#include "orch_selected/op_tanh.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

auto tanh_of() {
  return of_lanes(Type<float>{}, [](auto x) { return math::tanh(x); });
}

}  // namespace

// aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error tanh_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_tanh_out;
  return unary_floating<kDtypes.bits>(args.tensor(0), args.tensor(1),
                                      tanh_of());
}

// Prepared: floats.
void tanh(const PreparedCall& call) {
  map_prepared(static_cast<const ItemsCall&>(call), tanh_of());
}

}  // namespace orch::portable
