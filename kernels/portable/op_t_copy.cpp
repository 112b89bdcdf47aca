#include "orch/kernel.h"
#include "util/transpose.h"

namespace orch::portable {

// aten::t_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error t_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  ORCH_CHECK(self.dim <= 2, Error::InvalidArgument);
  return transpose(self, 0, self.dim == 2 ? 1 : 0, args.tensor(1));
}

}  // namespace orch::portable
