#include "orch_selected/op_sigmoid.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

auto sigmoid_of() {
  return of_lanes(Type<float>{},
                  [](auto x) { return 1 / (1 + math::exp(-x)); });
}

}  // namespace

// aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error sigmoid_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_sigmoid_out;
  return unary_floating<kDtypes.bits>(args.tensor(0), args.tensor(1),
                                      sigmoid_of());
}

// Prepared: floats.
void sigmoid(const PreparedCall& call) {
  map_prepared(static_cast<const ItemsCall&>(call), sigmoid_of());
}

}  // namespace orch::portable
