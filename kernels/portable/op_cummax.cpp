#include "orch_selected/op_cummax.h"

#include "orch/kernel.h"
#include "util/cumulative.h"

namespace orch::portable {

// aten::cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!)
// indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error cummax_out(const Args& args) {
  return extreme_along<selected::aten_cummax_out.bits>(
      args, [](auto item, auto before) { return item >= before; });
}

}  // namespace orch::portable
