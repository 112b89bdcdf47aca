#include "orch/kernel.h"
#include "util/check.h"

namespace orch::portable {

// aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None,
//   Tensor(a!) out) -> Tensor(a!)
//
// The items are undefined: they stay what they are.
Error empty_out(const Args& args) {
  return resize_to_list(args.tensor(2), args.int_list(0));
}

}  // namespace orch::portable
