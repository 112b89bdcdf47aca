#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"
#include "util/slice.h"

namespace orch::portable {

// aten::slice_copy.Tensor_out(Tensor self, int dim=0, SymInt? start=None,
//   SymInt? end=None, SymInt step=1, *, Tensor(a!) out) -> Tensor(a!)
Error slice_copy_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(5);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  Slice slice;
  ORCH_TRY(read_slice(args, 1, self, slice));
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  sizes[slice.dim] = slice.count;
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));

  ItemView view = items_of(self);
  view.offset = slice.start * view.stride[slice.dim];
  view.stride[slice.dim] *= slice.step;
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
