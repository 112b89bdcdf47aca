#include "orch_selected/op_hypot.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/complex.h"

namespace orch::portable {

// aten::hypot.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error hypot_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_hypot_out;
  return binary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1), args.tensor(2), [](auto x, auto y) {
        return magnitude(Complex<decltype(x)>{x, y});
      });
}

}  // namespace orch::portable
