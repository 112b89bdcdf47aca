#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::expand_copy.out(Tensor self, SymInt[] size, *, bool implicit=False,
//   Tensor(a!) out) -> Tensor(a!)
//
// `implicit` is for autograd: it changes no result.
Error expand_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList size = args.int_list(1);
  Tensor& out = args.tensor(3);

  const int rank = size.size();
  ORCH_CHECK(self.dtype == out.dtype && rank >= self.dim && rank <= kMaxDim,
             Error::InvalidArgument);
  const Strides strides(self);
  ItemView view{};
  int32_t sizes[kMaxDim];
  for (int i = 0; i < rank; ++i) {
    const int own = i - (rank - self.dim);
    const int64_t wanted = size[i];
    if (own >= 0 && (wanted == -1 || wanted == self.size(own))) {
      sizes[i] = self.size(own);
      view.stride[i] = strides[own];
    } else {
      ORCH_CHECK(own < 0 || self.size(own) == 1, Error::InvalidArgument);
      ORCH_CHECK(wanted >= 0, Error::InvalidArgument);
      ORCH_CHECK(wanted <= INT32_MAX, Error::ShapeTooLarge);
      sizes[i] = static_cast<int32_t>(wanted);
      view.stride[i] = 0;
    }
  }
  ORCH_TRY(resize_output(out, {sizes, static_cast<size_t>(rank)}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
