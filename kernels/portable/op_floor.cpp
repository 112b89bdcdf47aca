#include "orch_selected/op_floor.h"

#include "orch/kernel.h"
#include "util/round_items.h"

namespace orch::portable {

// aten::floor.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error floor_out(const Args& args) {
  return round_items<selected::aten_floor_out.bits, Rounding::Down>(args);
}

}  // namespace orch::portable
