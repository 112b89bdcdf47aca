#include "orch_selected/op_hardtanh.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::hardtanh.out(Tensor self, Scalar min_val=-1, Scalar max_val=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error hardtanh_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_hardtanh_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(3), [&](auto type) {
        using T = typename decltype(type)::type;
        const T low = scalar_to<T>(args.scalar(1));
        const T high = scalar_to<T>(args.scalar(2));
        // NaN stays NaN; the upper limit wins.
        return [=](T value) {
          const T raised = number_of(value) < number_of(low) ? low : value;
          return number_of(raised) > number_of(high) ? high : raised;
        };
      });
}

}  // namespace orch::portable
