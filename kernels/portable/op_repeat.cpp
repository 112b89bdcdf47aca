#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::repeat.out(Tensor self, SymInt[] repeats, *, Tensor(a!) out)
//   -> Tensor(a!)
//
// The first copy is made from `self`, the others from what `out` has by then.
Error repeat_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList repeats = args.int_list(1);
  Tensor& out = args.tensor(2);

  const int rank = repeats.size();
  ORCH_CHECK(self.dtype == out.dtype && rank >= self.dim && rank <= kMaxDim,
             Error::InvalidArgument);
  const Strides strides(self);
  ItemView view{};
  int32_t sizes[kMaxDim];  // of what is written so far
  int32_t out_sizes[kMaxDim];
  for (int i = 0; i < rank; ++i) {
    const int own = i - (rank - self.dim);
    sizes[i] = own < 0 ? 1 : self.size(own);
    view.stride[i] = own < 0 ? 0 : strides[own];
    ORCH_CHECK(repeats[i] >= 0, Error::InvalidArgument);
    ORCH_CHECK(sizes[i] == 0 || repeats[i] <= INT32_MAX, Error::ShapeTooLarge);
    const int64_t size = sizes[i] == 0 ? 0 : repeats[i] * sizes[i];
    ORCH_CHECK(size <= INT32_MAX, Error::ShapeTooLarge);
    out_sizes[i] = static_cast<int32_t>(size);
  }
  ORCH_TRY(resize_output(out, {out_sizes, static_cast<size_t>(rank)}, self));
  if (out.numel() == 0) return Error::Ok;

  move_view(out, 0, sizes, self, view);
  const ItemView all = items_of(out);
  for (int i = rank; i-- > 0;) {
    const int d = out.order()[i];
    while (sizes[d] < out_sizes[d]) {
      // Twice as many, and what is left in the end.
      const int32_t done = sizes[d];
      const int32_t left = out_sizes[d] - done;
      sizes[d] = left < done ? left : done;
      move_view(out, done * all.stride[d], sizes, out, all);
      sizes[d] += done;
    }
  }
  return Error::Ok;
}

}  // namespace orch::portable
