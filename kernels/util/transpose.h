// Copies with two dimensions swapped.
#pragma once

#include "util/check.h"
#include "util/move_items.h"

namespace orch {

/// out = self with these dimensions in each other's place. Without dimensions
/// both are 0. Errors: InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error transpose(const Tensor& self, int first,
                                                 int second, Tensor& out) {
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  const ItemView own = items_of(self);
  ItemView view{};
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) {
    const int from = i == first ? second : i == second ? first : i;
    sizes[i] = self.size(from);
    view.stride[i] = own.stride[from];
  }
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch
