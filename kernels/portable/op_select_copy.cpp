#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::select_copy.int_out(Tensor self, int dim, SymInt index, *,
//   Tensor(a!) out) -> Tensor(a!)
Error select_copy_int_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int64_t index = args.integer(2);
  Tensor& out = args.tensor(3);

  int dim = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  const int32_t size = self.size(dim);
  ORCH_CHECK(index >= -size && index < size, Error::InvalidArgument);
  if (index < 0) index += size;

  const Strides strides(self);
  ItemView view{};
  view.offset = static_cast<int32_t>(index) * strides[dim];
  int32_t sizes[kMaxDim];
  size_t rank = 0;
  for (int i = 0; i < self.dim; ++i) {
    if (i == dim) continue;
    sizes[rank] = self.size(i);
    view.stride[rank++] = strides[i];
  }
  ORCH_TRY(resize_output(out, {sizes, rank}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
