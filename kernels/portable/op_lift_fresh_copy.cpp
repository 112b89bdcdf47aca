#include "orch/kernel.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::lift_fresh_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error lift_fresh_copy_out(const Args& args) {
  return move_all(args.tensor(0), args.tensor(1));
}

}  // namespace orch::portable
