#include "orch/kernel.h"
#include "util/move_items.h"

namespace orch::portable {

// et_copy::_h2d_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// The CPU is the only device: its own memory to its own memory.
Error _h2d_copy_out(const Args& args) {
  return move_all(args.tensor(0), args.tensor(1));
}

}  // namespace orch::portable
