#include "orch_selected/op_ceil.h"

#include "orch/kernel.h"
#include "util/round_items.h"

namespace orch::portable {

// aten::ceil.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error ceil_out(const Args& args) {
  return round_items<selected::aten_ceil_out.bits, Rounding::Up>(args);
}

}  // namespace orch::portable
