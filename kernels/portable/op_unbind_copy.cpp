#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::unbind_copy.int_out(Tensor self, int dim=0, *, Tensor(a!)[] out) -> ()
Error unbind_copy_int_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const TensorList outs = args.tensor_list(2);

  int dim = 0;
  ORCH_CHECK(self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_CHECK(outs.size() == self.size(dim), Error::InvalidArgument);
  const Strides strides(self);
  ItemView view{};
  int32_t sizes[kMaxDim];
  size_t rank = 0;
  for (int i = 0; i < self.dim; ++i) {
    if (i == dim) continue;
    sizes[rank] = self.size(i);
    view.stride[rank++] = strides[i];
  }
  for (int i = 0; i < outs.size(); ++i) {
    ORCH_CHECK(outs[i] != nullptr && outs[i]->dtype == self.dtype,
               Error::InvalidArgument);
  }
  for (int i = 0; i < outs.size(); ++i) {
    ORCH_TRY(resize_output(*outs[i], {sizes, rank}, self));
  }
  for (int i = 0; i < outs.size(); ++i) {
    move_view(*outs[i], 0, sizes, self, view);
    view.offset += strides[dim];
  }
  return Error::Ok;
}

}  // namespace orch::portable
