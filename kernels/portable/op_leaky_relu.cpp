#include "orch_selected/op_leaky_relu.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::leaky_relu.out(Tensor self, Scalar negative_slope=0.01, *,
//   Tensor(a!) out) -> Tensor(a!)
Error leaky_relu_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_leaky_relu_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(2), [&](auto type) {
        using T = typename decltype(type)::type;
        using C = Compute<T>;
        const C slope = scalar_as<T>(args.scalar(1));
        return [slope](T value) {
          const C x = static_cast<C>(value);
          return x > 0 ? value : static_cast<T>(x * slope);
        };
      });
}

}  // namespace orch::portable
