#include "orch_selected/op_cumprod.h"

#include "orch/kernel.h"
#include "util/cumulative.h"

namespace orch::portable {

// aten::cumprod.out(Tensor self, int dim, *, ScalarType? dtype=None,
//   Tensor(a!) out) -> Tensor(a!)
Error cumprod_out(const Args& args) {
  return fold_along<selected::aten_cumprod_out.bits, 1>(
      args, [](auto product, auto item) { return product * item; });
}

}  // namespace orch::portable
