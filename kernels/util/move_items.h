// Moving items between tensors of one dtype: the same code for every dtype.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/dtype.h"
#include "util/strided_loop.h"

namespace orch {

// Functions are not inlined here: one copy serves all kernels of a program.

/// to[...] = from[...] for all rows; tensor 0 of the loop is `to`, tensor 1 is
/// `from`, and the pointers are those of its offset 0.
__attribute__((noinline)) inline void move_rows(StridedLoop& loop,
                                                const void* from, void* to,
                                                ScalarType dtype) {
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(dtype));
  for (; loop.valid(); loop.next()) {
    const uint8_t* const source =
        static_cast<const uint8_t*>(from) + loop.offset(1) * bytes;
    uint8_t* const target = static_cast<uint8_t*>(to) + loop.offset(0) * bytes;
    const int32_t count = loop.row_size();
    const int32_t source_step = loop.row_stride(1);
    const int32_t target_step = loop.row_stride(0);
    if (source_step == 1 && target_step == 1) {
      // The plan of a hostile program may let the memories overlap.
      memmove(target, source, static_cast<size_t>(count * bytes));
      continue;
    }
    const Error known = switch_item<~0U>(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      const T* const items = reinterpret_cast<const T*>(source);
      T* const targets = reinterpret_cast<T*>(target);
      for (int32_t i = 0; i < count; ++i) {
        targets[i * target_step] = items[i * source_step];
      }
      return Error::Ok;
    });
    static_cast<void>(known);  // tensors have no other dtypes
  }
}

/// Items of a tensor that are seen with sizes of their own: the first one and
/// the steps from there, in items. A step may be 0 or negative.
struct ItemView {
  int32_t offset;
  int32_t stride[kMaxDim];
};

/// All items of a tensor, seen with its own sizes.
__attribute__((noinline)) inline ItemView items_of(const Tensor& tensor) {
  const Strides strides(tensor);
  ItemView view{};
  for (int i = 0; i < tensor.dim; ++i) view.stride[i] = strides[i];
  return view;
}

/// A loop over the items of two views, in the memory order of `out`, which is
/// tensor 0. Both views have the rank of `out` and `sizes`.
__attribute__((noinline)) inline StridedLoop loop_between(
    const Tensor& out, const ItemView& to, const int32_t* sizes,
    const ItemView& view) {
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(sizes[d], to.stride[d], view.stride[d]);
  }
  return loop;
}

/// Copies the items of `from` at `view` to those of `out` at `to`. Both have
/// the rank of `out` and `sizes`; `from` is where the view's offset is 0.
__attribute__((noinline)) inline void move_between(Tensor& out,
                                                   const ItemView& to,
                                                   const int32_t* sizes,
                                                   const void* from,
                                                   const ItemView& view) {
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  StridedLoop loop = loop_between(out, to, sizes, view);
  if (!loop.valid()) return;
  move_rows(loop, static_cast<const uint8_t*>(from) + view.offset * bytes,
            out.mutable_data<uint8_t>() + to.offset * bytes, out.dtype);
}

/// Copies the items of `from` at `view` to those of `out` from `out_offset` on.
/// Both have the rank of `out` and `sizes`, and `out` has its own strides.
__attribute__((noinline)) inline void move_view(Tensor& out, int32_t out_offset,
                                                const int32_t* sizes,
                                                const Tensor& from,
                                                const ItemView& view) {
  ItemView to = items_of(out);
  to.offset = out_offset;
  move_between(out, to, sizes, from.memory, view);
}

}  // namespace orch
