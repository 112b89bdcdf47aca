#include "orch_selected/op_elu.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/unary.h"

namespace orch::portable {

// aten::elu.out(Tensor self, Scalar alpha=1, Scalar scale=1,
//   Scalar input_scale=1, *, Tensor(a!) out) -> Tensor(a!)
Error elu_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_elu_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(4), [&](auto type) {
        using T = typename decltype(type)::type;
        using C = Compute<T>;
        const C above = scalar_as<T>(args.scalar(2));
        const C below = scalar_as<T>(args.scalar(1)) * above;
        const C inside = scalar_as<T>(args.scalar(3));
        return of_lanes(type, [=](auto value) {
          const auto x = number_of(value);
          return static_cast<decltype(value)>(if_negative(
              x, [=] { return math::expm1(x * inside) * below; },
              [=] { return x * above; }));
        });
      });
}

}  // namespace orch::portable
