#include "orch_selected/op_amin.h"

#include "orch/kernel.h"
#include "util/extreme.h"

namespace orch::portable {

// aten::amin.out(Tensor self, int[1] dim=[], bool keepdim=False, *,
//   Tensor(a!) out) -> Tensor(a!)
Error amin_out(const Args& args) {
  return extremes<selected::aten_amin_out.bits, true>(args);
}

}  // namespace orch::portable
