#include "orch_selected/op_neg.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error neg_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_neg_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(1), [](auto type) {
        using T = typename decltype(type)::type;
        return [](T value) {
          return static_cast<T>(-static_cast<Compute<T>>(value));
        };
      });
}

}  // namespace orch::portable
