#include "orch/kernel.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::detach_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error detach_copy_out(const Args& args) {
  return move_all(args.tensor(0), args.tensor(1));
}

}  // namespace orch::portable
