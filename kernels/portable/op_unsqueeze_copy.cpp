#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::unsqueeze_copy.out(Tensor self, int dim, *, Tensor(a!) out)
//   -> Tensor(a!)
Error unsqueeze_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  int dim = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim < kMaxDim,
             Error::InvalidArgument);
  const int rank = self.dim + 1;
  ORCH_TRY(read_dim(args.integer(1), rank, dim));

  const Strides strides(self);
  ItemView view{};
  int32_t sizes[kMaxDim];
  for (int i = 0, own = 0; i < rank; ++i) {
    sizes[i] = i == dim ? 1 : self.size(own);
    view.stride[i] = i == dim ? 0 : strides[own++];
  }
  ORCH_TRY(resize_output(out, {sizes, static_cast<size_t>(rank)}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
