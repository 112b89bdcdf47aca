// Copies of tensors into tensors of any dtype and dim order.
#pragma once

#include "util/dtype.h"
#include "util/truncate.h"
#include "util/unary.h"

namespace orch {

/// out[...] = self[...], converted; tensor 0 of the loop is `out`, tensor 1 is
/// `self`. kFrom: dtypes of `self`; kTo: dtypes of `out`. Errors:
/// DtypeNotSelected.
template <uint32_t kFrom, uint32_t kTo>
Error copy_rows(StridedLoop& loop, const Tensor& self, Tensor& out) {
  if (self.dtype == out.dtype) {
    return switch_item<(kFrom & kTo)>(self.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      map_rows(loop, self.data<T>(), out.mutable_data<T>(),
               [](T value) { return value; });
      return Error::Ok;
    });
  }
  return switch_dtype<kFrom>(self.dtype, [&](auto in) {
    using From = typename decltype(in)::type;
    constexpr uint32_t kOthers =
        kTo & ~dtype_set(DtypeOf<From>::value).bits;  // done above
    return switch_dtype<kOthers>(out.dtype, [&](auto to) {
      using To = typename decltype(to)::type;
      map_rows(loop, self.data<From>(), out.mutable_data<To>(),
               [](From value) { return cast_item<To>(value); });
      return Error::Ok;
    });
  });
}

/// Whether `out` has the dim order that argument `index` (`int[]? dim_order`)
/// asks for; without one, that of `self`.
inline bool has_dim_order(const Args& args, int index, const Tensor& self,
                          const Tensor& out) {
  if (!args.has(index)) return same_layout(self, out);
  const IntList order = args.int_list(index);
  if (order.size() != out.dim) return false;
  for (int i = 0; i < out.dim; ++i) {
    if (order[i] != out.order()[i]) return false;
  }
  return true;
}

}  // namespace orch
