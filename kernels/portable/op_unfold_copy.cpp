#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::unfold_copy.out(Tensor self, int dimension, int size, int step, *,
//   Tensor(a!) out) -> Tensor(a!)
Error unfold_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t window = args.integer(2);
  const int64_t step = args.integer(3);
  Tensor& out = args.tensor(4);

  int dim = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim < kMaxDim,
             Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  const int32_t size = self.dim == 0 ? 1 : self.size(dim);
  ORCH_CHECK(window >= 0 && window <= size && step > 0, Error::InvalidArgument);

  ItemView view = items_of(self);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  sizes[self.dim] = static_cast<int32_t>(window);
  if (self.dim > 0) {
    view.stride[self.dim] = view.stride[dim];
    const int32_t left = size - sizes[self.dim];
    // Of a single window the step is not used, and could be too large.
    const bool single = step > left;
    sizes[dim] = single ? 1 : left / static_cast<int32_t>(step) + 1;
    if (!single) view.stride[dim] *= static_cast<int32_t>(step);
  }
  const size_t rank = size_t{self.dim} + 1;
  ORCH_TRY(resize_output(out, {sizes, rank}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
