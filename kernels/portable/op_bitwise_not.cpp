#include "orch_selected/op_bitwise_not.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::bitwise_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error bitwise_not_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_not_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(1), [](auto type) {
        using T = typename decltype(type)::type;
        return [](T value) {
          if constexpr (kIsSame<T, bool>) {
            return !value;
          } else {
            return static_cast<T>(~static_cast<Compute<T>>(value));
          }
        };
      });
}

}  // namespace orch::portable
