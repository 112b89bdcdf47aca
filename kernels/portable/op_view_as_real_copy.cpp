#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"
#include "util/parts.h"

namespace orch::portable {

// aten::view_as_real_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// One more dimension: real and imaginary part.
Error view_as_real_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(kComplex.has(self.dtype) && out.dtype == dtype_of_parts(self) &&
                 self.dim < kMaxDim,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  const Strides from(self);
  ItemView view{};
  for (int d = 0; d < self.dim; ++d) {
    sizes[d] = self.size(d);
    view.stride[d] = 2 * from[d];
  }
  sizes[self.dim] = 2;
  view.stride[self.dim] = 1;
  ORCH_TRY(resize_output(out, {sizes, self.dim + size_t{1}}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
