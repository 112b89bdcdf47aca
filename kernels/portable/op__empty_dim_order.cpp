#include "orch/kernel.h"
#include "util/check.h"

namespace orch::portable {

// dim_order_ops::_empty_dim_order.out(int[] size, *, int[]? dim_order=None,
//   Tensor(a!) out) -> Tensor(a!)
//
// The items are undefined, so their order makes no difference.
Error _empty_dim_order_out(const Args& args) {
  return resize_to_list(args.tensor(2), args.int_list(0));
}

}  // namespace orch::portable
