#include "orch_selected/op_sign.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::sign.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// 0 for NaN.
Error sign_out(const Args& args) {
  return unary_same<selected::aten_sign_out.bits>(
      args.tensor(0), args.tensor(1), [](auto type) {
        using T = typename decltype(type)::type;
        return [](T item) {
          const auto x = number_of(item);
          using N = decltype(number_of(item));
          return static_cast<T>(static_cast<N>(static_cast<int>(N(0) < x) -
                                               static_cast<int>(x < N(0))));
        };
      });
}

}  // namespace orch::portable
