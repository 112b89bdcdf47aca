#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::narrow_copy.out(Tensor self, int dim, SymInt start, SymInt length, *,
//   Tensor(a!) out) -> Tensor(a!)
Error narrow_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int64_t start = args.integer(2);
  const int64_t length = args.integer(3);
  Tensor& out = args.tensor(4);

  int dim = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  const int32_t size = self.size(dim);
  ORCH_CHECK(start >= -size && start <= size, Error::InvalidArgument);
  if (start < 0) start += size;
  ORCH_CHECK(length >= 0 && length <= size - start, Error::InvalidArgument);

  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  sizes[dim] = static_cast<int32_t>(length);
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
  ItemView view = items_of(self);
  view.offset = static_cast<int32_t>(start) * view.stride[dim];
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
