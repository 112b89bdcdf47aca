#include "orch_selected/op_cumsum.h"

#include "orch/kernel.h"
#include "util/cumulative.h"

namespace orch::portable {

// aten::cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None,
//   Tensor(a!) out) -> Tensor(a!)
Error cumsum_out(const Args& args) {
  return fold_along<selected::aten_cumsum_out.bits, 0>(
      args, [](auto sum, auto item) { return sum + item; });
}

}  // namespace orch::portable
