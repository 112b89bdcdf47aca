#include "orch/kernel.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::clone.out(Tensor self, *, MemoryFormat? memory_format=None,
//   Tensor(a!) out) -> Tensor(a!)
//
// The dim order is the output's, whatever the format.
Error clone_out(const Args& args) {
  return move_all(args.tensor(0), args.tensor(2));
}

}  // namespace orch::portable
