#include "orch_selected/op__to_dim_order_copy.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/copy.h"

namespace orch::portable {

// dim_order_ops::_to_dim_order_copy.out(Tensor self, *, bool
//   non_blocking=False, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)
Error _to_dim_order_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  constexpr DtypeSet kFrom =
      selected::dim_order_ops__to_dim_order_copy_out_of_self;
  constexpr DtypeSet kTo =
      selected::dim_order_ops__to_dim_order_copy_out_of_out;
  ORCH_CHECK(has_dim_order(args, 2, self, out), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  StridedLoop loop = loop_over(out, self);
  return copy_rows<kFrom.bits, kTo.bits>(loop, self, out);
}

}  // namespace orch::portable
