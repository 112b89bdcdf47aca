#include "orch_selected/op_mul.h"

#include "orch/kernel.h"
#include "util/binary.h"

namespace orch::portable {

// aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error mul_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_mul_out;
  return binary<kDtypes.bits, (kReal | kBool).bits>(
      args.tensor(0), args.tensor(1), args.tensor(2), [](auto type) {
        using T = typename decltype(type)::type;
        using C = Compute<T>;
        return [](T a, T b) {
          return static_cast<T>(static_cast<C>(a) * static_cast<C>(b));
        };
      });
}

}  // namespace orch::portable
