#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes,
//   int dim=0, *, Tensor(a!)[] out) -> ()
Error split_with_sizes_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList split_sizes = args.int_list(1);
  const TensorList outs = args.tensor_list(3);

  int dim = 0;
  ORCH_CHECK(self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(2), self.dim, dim));
  ORCH_CHECK(outs.size() == split_sizes.size(), Error::InvalidArgument);
  int64_t left = self.size(dim);
  for (int i = 0; i < outs.size(); ++i) {
    const int64_t size = split_sizes[i];
    ORCH_CHECK(size >= 0 && size <= left, Error::InvalidArgument);
    ORCH_CHECK(outs[i] != nullptr && outs[i]->dtype == self.dtype,
               Error::InvalidArgument);
    left -= size;
  }
  ORCH_CHECK(left == 0, Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  for (int i = 0; i < outs.size(); ++i) {
    sizes[dim] = static_cast<int32_t>(split_sizes[i]);
    ORCH_TRY(resize_output(*outs[i], {sizes, self.dim}, self));
  }
  // Outputs that share their sizes have those of the last one.
  for (int i = 0; i < outs.size(); ++i) {
    ORCH_CHECK(outs[i]->size(dim) == split_sizes[i], Error::InvalidArgument);
  }

  const Strides strides(self);
  ItemView view{};
  for (int i = 0; i < self.dim; ++i) view.stride[i] = strides[i];
  for (int i = 0; i < outs.size(); ++i) {
    move_view(*outs[i], 0, outs[i]->dims, self, view);
    view.offset += outs[i]->size(dim) * strides[dim];
  }
  return Error::Ok;
}

}  // namespace orch::portable
