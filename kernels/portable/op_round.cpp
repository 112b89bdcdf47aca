#include "orch_selected/op_round.h"

#include "orch/kernel.h"
#include "util/round_items.h"

namespace orch::portable {

// aten::round.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// Ties go to the even number.
Error round_out(const Args& args) {
  return round_items<selected::aten_round_out.bits, Rounding::ToEven>(args);
}

}  // namespace orch::portable
