#include "orch_selected/op_neg.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

#define ORCH_NEG(x, y) "vneg.f32 " x ", " x "\n"
ORCH_LANES(neg_lanes, ORCH_NEG);
}  // namespace

// aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error neg_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_neg_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(1), [](auto type) {
        using T = typename decltype(type)::type;
        return in_lanes(
            type,
            [](T value) {
              return static_cast<T>(-static_cast<Compute<T>>(value));
            },
            neg_lanes);
      });
}

}  // namespace orch::portable
