#include "orch_selected/op_amax.h"

#include "orch/kernel.h"
#include "util/extreme.h"

namespace orch::portable {

// aten::amax.out(Tensor self, int[1] dim=[], bool keepdim=False, *,
//   Tensor(a!) out) -> Tensor(a!)
Error amax_out(const Args& args) {
  return extremes<selected::aten_amax_out.bits, false>(args);
}

}  // namespace orch::portable
