#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"
#include "util/parts.h"

namespace orch::portable {

// aten::view_as_complex_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// The last dimension is that of real and imaginary part.
Error view_as_complex_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(kComplex.has(out.dtype) && self.dtype == dtype_of_parts(out) &&
                 self.dim > 0 && self.size(self.dim - 1) == 2,
             Error::InvalidArgument);
  const int rank = self.dim - 1;
  int32_t sizes[kMaxDim];
  for (int d = 0; d < rank; ++d) sizes[d] = self.size(d);
  ORCH_TRY(resize_output(out, {sizes, static_cast<size_t>(rank)}, self));
  const Strides from(self);
  const Strides to(out);
  StridedLoop loop;
  for (int i = 0; i < rank; ++i) {
    const int d = out.order()[i];
    loop.add(out.size(d), 2 * to[d], from[d]);
  }
  loop.add(2, 1, from[rank]);
  move_rows(loop, self.memory, out.memory, self.dtype);
  return Error::Ok;
}

}  // namespace orch::portable
