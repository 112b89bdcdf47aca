// Tensors that become parts of one.
#pragma once

#include "util/dtype.h"
#include "util/move_items.h"
#include "util/promote.h"

namespace orch {

/// Copies the items of `from` at `view` to those of `out` from `offset` on, as
/// move_view does, converted where the dtypes differ. kBits: dtypes of both.
/// Trusts that `from` may be cast to `out`. Errors: DtypeNotSelected.
template <uint32_t kBits>
Error join_part(Tensor& out, int32_t offset, const int32_t* sizes,
                const Tensor& from, const ItemView& view) {
  if (from.dtype == out.dtype) {
    move_view(out, offset, sizes, from, view);
    return Error::Ok;
  }
  if constexpr (!DtypeSet{kBits}.single()) {
    const Strides strides(out);
    StridedLoop loop;
    loop_between(loop, out, sizes, strides.at, view.stride);
    return switch_dtype<kBits>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      constexpr DtypeSet kFrom =
          castable_from(DtypeSet{kBits}, dtype_set(DtypeOf<T>::value));
      if constexpr ((kBits & kComplex.bits) != 0) {
        ORCH_CHECK(kFrom.has(from.dtype), Error::DtypeNotSelected);
      }
      for (; loop.valid(); loop.next()) {
        T* const target = out.mutable_data<T>() + offset + loop.offset(0);
        const int32_t source = view.offset + loop.offset(1);
        for (int32_t i = 0; i < loop.row_size(); ++i) {
          target[i * loop.row_stride(0)] = load_as<T, kFrom.bits>(
              from.dtype, from.memory, source + i * loop.row_stride(1));
        }
      }
      return Error::Ok;
    });
  }
  return Error::DtypeNotSelected;
}

}  // namespace orch
