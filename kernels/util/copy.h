// Copies of tensors into tensors of any dtype and dim order.
#pragma once

#include "util/dtype.h"
#include "util/move_items.h"
#include "util/truncate.h"
#include "util/unary.h"

namespace orch {

/// to[...] = from[...], converted from another dtype; tensor 0 of the loop is
/// `to`, tensor 1 is `from`, and the pointers are those of its offset 0. kFrom,
/// kTo: their dtypes. Errors: DtypeNotSelected.
template <uint32_t kFrom, uint32_t kTo>
Error convert_rows(StridedLoop& loop, ScalarType from_dtype, const void* from,
                   ScalarType to_dtype, void* to) {
  return switch_dtype<kFrom>(from_dtype, [&](auto in) {
    using From = typename decltype(in)::type;
    constexpr uint32_t kOthers = kTo & ~dtype_set(DtypeOf<From>::value).bits;
    return switch_dtype<kOthers>(to_dtype, [&](auto out) {
      using To = typename decltype(out)::type;
      map_rows(loop, static_cast<const From*>(from), static_cast<To*>(to),
               [](From value) { return cast_item<To>(value); });
      return Error::Ok;
    });
  });
}

/// out[...] = self[...], of one of these dtypes; tensor 0 of the loop is `out`,
/// tensor 1 is `self`. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error copy_same(StridedLoop& loop, const Tensor& self, Tensor& out) {
  if constexpr (kFavourSpeed) {
    ORCH_CHECK(DtypeSet{kBits}.has(self.dtype), Error::DtypeNotSelected);
    move_rows(loop, self.memory, out.memory, self.dtype);
    return Error::Ok;
  } else {
    return switch_item<kBits>(self.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      map_rows(loop, self.data<T>(), out.mutable_data<T>(),
               [](T value) { return value; });
      return Error::Ok;
    });
  }
}

/// out[...] = self[...], converted; tensor 0 of the loop is `out`, tensor 1 is
/// `self`. kFrom: dtypes of `self`; kTo: dtypes of `out`. Errors:
/// DtypeNotSelected.
template <uint32_t kFrom, uint32_t kTo>
Error copy_rows(StridedLoop& loop, const Tensor& self, Tensor& out) {
  if (self.dtype == out.dtype) {
    return copy_same<(kFrom & kTo)>(loop, self, out);
  }
  return convert_rows<kFrom, kTo>(loop, self.dtype, self.memory, out.dtype,
                                  out.memory);
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
