#include "orch_selected/op__softmax.h"

#include "orch/kernel.h"
#include "softmax.h"

namespace orch::portable {

// aten::_softmax.out(Tensor self, int dim, bool half_to_float, *,
//   Tensor(a!) out) -> Tensor(a!)
Error _softmax_out(const Args& args) {
  return softmax<selected::aten__softmax_out.bits, false>(args);
}

}  // namespace orch::portable
