#include "orch_selected/op_trunc.h"

#include "orch/kernel.h"
#include "util/round_items.h"

namespace orch::portable {

// aten::trunc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error trunc_out(const Args& args) {
  return round_items<selected::aten_trunc_out.bits, Rounding::ToZero>(args);
}

}  // namespace orch::portable
