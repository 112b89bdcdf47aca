// Tensors in parts along a dimension.
#pragma once

#include "orch/value.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch {

/// Writes the parts of `self` along `dim`; size(i) is that of part `i`. Trusts
/// that these are at least 0 and add up to the size of `dim`. Errors:
/// InvalidArgument, ShapeTooLarge.
template <typename Size>
Error split(const Tensor& self, int dim, const TensorList& outs,
            const Size& size) {
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  for (int i = 0; i < outs.size(); ++i) {
    ORCH_CHECK(outs[i] != nullptr && outs[i]->dtype == self.dtype,
               Error::InvalidArgument);
  }
  for (int i = 0; i < outs.size(); ++i) {
    sizes[dim] = size(i);
    ORCH_TRY(resize_output(*outs[i], {sizes, self.dim}, self));
  }
  // Outputs that share their sizes have those of the last one.
  for (int i = 0; i < outs.size(); ++i) {
    ORCH_CHECK(outs[i]->size(dim) == size(i), Error::InvalidArgument);
  }
  ItemView view = items_of(self);
  for (int i = 0; i < outs.size(); ++i) {
    move_view(*outs[i], 0, outs[i]->dims, self, view);
    view.offset += outs[i]->size(dim) * view.stride[dim];
  }
  return Error::Ok;
}

}  // namespace orch
