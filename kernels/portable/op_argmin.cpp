#include "orch_selected/op_argmin.h"

#include "orch/kernel.h"
#include "util/extreme.h"

namespace orch::portable {

// aten::argmin.out(Tensor self, int? dim=None, bool keepdim=False, *,
//   Tensor(a!) out) -> Tensor(a!)
Error argmin_out(const Args& args) {
  return find_extreme<selected::aten_argmin_out.bits, true>(args);
}

}  // namespace orch::portable
