#include "orch/kernel.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::_conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// Of real numbers, which are their own conjugates.
Error _conj_physical_out(const Args& args) {
  return move_all(args.tensor(0), args.tensor(1));
}

}  // namespace orch::portable
