#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::squeeze_copy.dims_out(Tensor self, int[] dim, *, Tensor(a!) out)
//   -> Tensor(a!)
Error squeeze_copy_dims_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList dims = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  unsigned squeezed = 0;
  ORCH_TRY(read_dims(dims, self.dim, squeezed));

  const Strides strides(self);
  ItemView view{};
  int32_t sizes[kMaxDim];
  size_t rank = 0;
  for (int i = 0; i < self.dim; ++i) {
    if (((squeezed >> i) & 1U) != 0 && self.size(i) == 1) continue;
    sizes[rank] = self.size(i);
    view.stride[rank++] = strides[i];
  }
  ORCH_TRY(resize_output(out, {sizes, rank}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
