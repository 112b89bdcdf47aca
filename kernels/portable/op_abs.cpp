#include "orch_selected/op_abs.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error abs_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_abs_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(1), [](auto type) {
        using T = typename decltype(type)::type;
        return [](T value) {
          // Added to 0, so that -0 becomes 0; the lowest integer stays.
          using C = Compute<T>;
          const C size = static_cast<C>(value);
          return static_cast<T>(is_negative(value) ? C(0) - size : C(0) + size);
        };
      });
}

}  // namespace orch::portable
