#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {

// aten::as_strided_copy.out(Tensor self, SymInt[] size, SymInt[] stride,
//   SymInt? storage_offset=None, *, Tensor(a!) out) -> Tensor(a!)
//
// Strides are steps in the memory of `self`, whatever its dim order.
Error as_strided_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList size = args.int_list(1);
  const IntList stride = args.int_list(2);
  const int64_t offset = args.has(3) ? args.integer(3) : 0;
  Tensor& out = args.tensor(4);

  const int rank = size.size();
  ORCH_CHECK(self.dtype == out.dtype && rank <= kMaxDim &&
                 stride.size() == rank && offset >= 0,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  bool empty = false;
  for (int i = 0; i < rank; ++i) {
    ORCH_CHECK(size[i] >= 0 && stride[i] >= 0, Error::InvalidArgument);
    ORCH_CHECK(size[i] <= INT32_MAX, Error::ShapeTooLarge);
    sizes[i] = static_cast<int32_t>(size[i]);
    empty = empty || sizes[i] == 0;
  }
  ItemView view{};
  if (!empty) {
    // The last item. Each term is below 2^62, and what was added before them
    // below 2^31: no sum overflows.
    const int32_t count = self.numel();
    ORCH_CHECK(offset < count, Error::InvalidArgument);
    view.offset = static_cast<int32_t>(offset);
    int64_t last = offset;
    for (int i = 0; i < rank; ++i) {
      if (sizes[i] == 1) continue;  // its stride is not used
      ORCH_CHECK(stride[i] < count, Error::InvalidArgument);
      last += stride[i] * (sizes[i] - 1);
      ORCH_CHECK(last < count, Error::InvalidArgument);
      view.stride[i] = static_cast<int32_t>(stride[i]);
    }
  }
  ORCH_TRY(resize_output(out, {sizes, static_cast<size_t>(rank)}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
