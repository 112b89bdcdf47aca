#include "orch_selected/op_argmax.h"

#include "orch/kernel.h"
#include "util/extreme.h"

namespace orch::portable {

// aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *,
//   Tensor(a!) out) -> Tensor(a!)
Error argmax_out(const Args& args) {
  return find_extreme<selected::aten_argmax_out.bits, false>(args);
}

}  // namespace orch::portable
