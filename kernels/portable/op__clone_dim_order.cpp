#include "orch_selected/op__clone_dim_order.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/copy.h"

namespace orch::portable {

// dim_order_ops::_clone_dim_order.out(Tensor self, *, bool non_blocking=False,
//   int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)
Error _clone_dim_order_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  constexpr DtypeSet kDtypes = selected::dim_order_ops__clone_dim_order_out;
  ORCH_CHECK(self.dtype == out.dtype && has_dim_order(args, 2, self, out),
             Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  StridedLoop loop = loop_over(out, self);
  return copy_same<kDtypes.bits>(loop, self, out);
}

}  // namespace orch::portable
