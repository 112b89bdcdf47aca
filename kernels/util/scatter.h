// Copies of a tensor with some of its items replaced.
#pragma once

#include "util/check.h"
#include "util/copy.h"
#include "util/move_items.h"

namespace orch {

/// out = self, but for the items at `to`, which are those of `src` at `view`,
/// converted to the dtype of `out`; both have the rank of `out` and `sizes`.
/// kFrom: dtypes of `src`; kTo: dtypes of `out`. Trusts that `out` has the
/// sizes and the dtype of `self`. Errors: DtypeNotSelected.
template <uint32_t kFrom, uint32_t kTo>
Error scatter(const Tensor& self, const Tensor& src, Tensor& out,
              const ItemView& to, const int32_t* sizes, const ItemView& view) {
  constexpr bool kConverts = !DtypeSet{kFrom | kTo}.single();
  ORCH_CHECK(DtypeSet{kFrom}.has(src.dtype) && DtypeSet{kTo}.has(out.dtype) &&
                 (kConverts || src.dtype == out.dtype),
             Error::DtypeNotSelected);
  // The plan may have put both in one place.
  if (self.memory != out.memory || !same_layout(self, out)) {
    move_view(out, 0, self.dims, self, items_of(self));
  }
  if constexpr (kConverts) {
    if (src.dtype != out.dtype) {
      const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
      const ptrdiff_t src_bytes = static_cast<ptrdiff_t>(item_bytes(src.dtype));
      StridedLoop loop;
      loop_between(loop, out, sizes, to.stride, view.stride);
      return convert_rows<kFrom, kTo>(
          loop, src.dtype, src.data<uint8_t>() + view.offset * src_bytes,
          out.dtype, out.mutable_data<uint8_t>() + to.offset * bytes);
    }
  }
  move_between(out, to.offset, to.stride, sizes, src.memory, view);
  return Error::Ok;
}

}  // namespace orch
