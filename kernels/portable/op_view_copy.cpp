#include "orch/kernel.h"
#include "util/check.h"
#include "util/flattened.h"
#include "util/view_sizes.h"

namespace orch::portable {

// aten::view_copy.out(Tensor self, SymInt[] size, *, Tensor(a!) out)
//   -> Tensor(a!)
Error view_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList size = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && size.size() == out.dim,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  ORCH_TRY(view_sizes(size, self.numel(), sizes));
  ORCH_TRY(resize_output(out, {sizes, out.dim}, self));

  move_flattened(out, self, 0);
  return Error::Ok;
}

}  // namespace orch::portable
