#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

namespace {

/// out = self without those dimensions of a set that have size 1. Errors:
/// InvalidArgument, ShapeTooLarge.
Error squeeze(const Tensor& self, unsigned squeezed, Tensor& out) {
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
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

}  // namespace

// aten::squeeze_copy.dim_out(Tensor self, int dim, *, Tensor(a!) out)
//   -> Tensor(a!)
Error squeeze_copy_dim_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  return squeeze(self, 1U << dim, args.tensor(2));
}

// aten::squeeze_copy.dims_out(Tensor self, int[] dim, *, Tensor(a!) out)
//   -> Tensor(a!)
Error squeeze_copy_dims_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  unsigned squeezed = 0;
  ORCH_TRY(read_dims(args.int_list(1), self.dim, squeezed));
  return squeeze(self, squeezed, args.tensor(2));
}

}  // namespace orch::portable
