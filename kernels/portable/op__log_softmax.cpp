#include "orch_selected/op__log_softmax.h"

#include "orch/kernel.h"
#include "softmax.h"

namespace orch::portable {

// aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *,
//   Tensor(a!) out) -> Tensor(a!)
Error _log_softmax_out(const Args& args) {
  return softmax<selected::aten__log_softmax_out.bits, true>(args);
}

}  // namespace orch::portable
