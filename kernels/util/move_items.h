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

/// Copies the items of `from` at `view` to those of `out` from `out_offset` on.
/// Both have the rank of `out` and `sizes`, and `out` has its own strides.
__attribute__((noinline)) inline void move_view(Tensor& out, int32_t out_offset,
                                                const int32_t* sizes,
                                                const Tensor& from,
                                                const ItemView& view) {
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  const Strides out_strides(out);
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(sizes[d], out_strides[d], view.stride[d]);
  }
  if (!loop.valid()) return;
  move_rows(loop, from.data<uint8_t>() + view.offset * bytes,
            out.mutable_data<uint8_t>() + out_offset * bytes, out.dtype);
}

}  // namespace orch
