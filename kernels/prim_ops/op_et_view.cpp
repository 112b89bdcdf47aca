#include <string.h>

#include "orch/kernel.h"
#include "util/view_sizes.h"

namespace orch::prim_ops {

// executorch_prim::et_view.default(Tensor self, SymInt[] size) -> Tensor
//
// The memory plan lets a view lie where its base does, and then only the sizes
// are written. Elsewhere, as where a move has replaced the base, the result
// gets a copy in its own memory, and never becomes an alias: its capacity is
// that of its own memory, and the base may be constant.
Error et_view_default(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList size = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_CHECK(self.contiguous() && out.contiguous(), Error::InvalidArgument);
  ORCH_CHECK(size.size() == out.dim, Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  ORCH_TRY(view_sizes(size, self.numel(), sizes));
  // Before the sizes change, which may be those of the base as well.
  const size_t bytes = self.nbytes();
  ORCH_TRY(resize(out, {sizes, out.dim}));
  // Without bytes the memory may be null.
  if (out.memory != self.memory && bytes != 0) {
    memmove(out.memory, self.memory, bytes);
  }
  return Error::Ok;
}

}  // namespace orch::prim_ops
