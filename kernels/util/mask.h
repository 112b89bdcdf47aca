// Masks that are broadcast to a tensor.
#pragma once

#include "util/broadcast.h"
#include "util/strided_loop.h"

namespace orch {

/// The sizes that `self` and `mask` broadcast to. Errors: InvalidArgument (they
/// do not), ShapeTooLarge (so many items cannot be counted).
__attribute__((noinline)) inline Error masked_sizes(const Tensor& self,
                                                    const Tensor& mask,
                                                    int32_t* sizes) {
  ORCH_TRY(broadcast_sizes(self, mask, sizes));
  const int rank = mask.dim > self.dim ? mask.dim : self.dim;
  int64_t items = 1;
  for (int d = 0; d < rank; ++d) {
    items *= sizes[d] == 0 ? 1 : sizes[d];
    ORCH_CHECK(items <= INT32_MAX, Error::ShapeTooLarge);
  }
  return Error::Ok;
}

/// A loop over what `self` and `mask` broadcast to, row by row by index,
/// whatever the dim orders; tensor 0 is the mask, 1 `self`, 2 `out`. `out` is
/// null, or has these sizes. Trusts that they broadcast.
__attribute__((noinline)) inline StridedLoop loop_over_mask(const Tensor& mask,
                                                            const Tensor& self,
                                                            const Tensor* out) {
  const Strides at_mask(mask);
  const Strides at_self(self);
  const Strides at_out(out == nullptr ? self : *out);
  const int rank = mask.dim > self.dim ? mask.dim : self.dim;
  StridedLoop loop;
  for (int d = 0; d < rank; ++d) {
    const int of_mask = d - (rank - mask.dim);
    const int of_self = d - (rank - self.dim);
    int32_t size = of_self < 0 ? 1 : self.size(of_self);
    if (size == 1 && of_mask >= 0) size = mask.size(of_mask);
    loop.add(size, broadcast_stride(mask, at_mask, d, rank),
             broadcast_stride(self, at_self, d, rank),
             out == nullptr ? 0 : at_out[d]);
  }
  return loop;
}

/// Items of the mask in such a loop that are true.
__attribute__((noinline)) inline int32_t count_true(StridedLoop loop,
                                                    const Tensor& mask) {
  int32_t count = 0;
  for (; loop.valid(); loop.next()) {
    const uint8_t* const items = mask.data<uint8_t>() + loop.offset(0);
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      count += items[i * loop.row_stride(0)] != 0 ? 1 : 0;
    }
  }
  return count;
}

}  // namespace orch
