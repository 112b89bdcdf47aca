#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::flip.out(Tensor self, int[] dims, *, Tensor(a!) out) -> Tensor(a!)
Error flip_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList dims = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  unsigned flipped = 0;
  ORCH_TRY(read_dims(dims, self.dim, flipped));
  ORCH_TRY(set_sizes(out, self.sizes()));

  const Strides strides(self);
  ItemView view{};
  for (int i = 0; i < self.dim; ++i) {
    view.stride[i] = strides[i];
    if (((flipped >> i) & 1U) == 0) continue;
    view.offset += (self.size(i) - 1) * strides[i];
    view.stride[i] = -strides[i];
  }
  move_view(out, 0, self.dims, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
