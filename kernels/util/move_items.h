// Moving items between tensors of one dtype: the same code for every dtype.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/strided_loop.h"

namespace orch {

// Functions are not inlined here: one copy serves all kernels of a program.

/// Copies `count` items, each a step further on than the one before.
inline void move_row(const void* from, int32_t from_step, void* to,
                     int32_t to_step, int32_t count, ScalarType dtype) {
  if (from_step == 1 && to_step == 1) {
    // The plan of a hostile program may let the memories overlap.
    memmove(to, from, static_cast<size_t>(count) * item_bytes(dtype));
    return;
  }
  const Error known = switch_item<~0U>(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const items = static_cast<const T*>(from);
    T* const targets = static_cast<T*>(to);
    for (int32_t i = 0; i < count; ++i) {
      targets[i * to_step] = items[i * from_step];
    }
    return Error::Ok;
  });
  static_cast<void>(known);  // tensors have no other dtypes
}

/// Whether a loop has one row, whose items lie side by side in both tensors.
inline bool is_side_by_side(const StridedLoop& loop) {
  return loop.plane_rows() == 1 &&
         (loop.row_size() == 1 ||
          (loop.row_stride(0) == 1 && loop.row_stride(1) == 1));
}

/// move_rows() for rows of `bytes` bytes that lie side by side in both tensors.
ORCH_HOT inline void move_lines(StridedLoop& loop, const uint8_t* from,
                                uint8_t* to, ptrdiff_t item, size_t bytes) {
  const int32_t rows = loop.plane_rows();
  const ptrdiff_t next_from = loop.plane_stride(1) * item;
  const ptrdiff_t next_to = loop.plane_stride(0) * item;
  for (; loop.valid(); loop.next_plane()) {
    const uint8_t* source = from + loop.offset(1) * item;
    uint8_t* target = to + loop.offset(0) * item;
    for (int32_t left = rows; left > 0; --left) {
      memmove(target, source, bytes);
      source += next_from;
      target += next_to;
    }
  }
}

/// move_rows() for items of type T, without a choice in every row.
template <typename T>
void move_planes(StridedLoop& loop, const T* from, T* to) {
  const int32_t from_step = loop.row_stride(1);
  const int32_t to_step = loop.row_stride(0);
  const int32_t count = loop.row_size();
  const int32_t rows = loop.plane_rows();
  const int32_t next_items = loop.plane_stride(1);
  const int32_t next_targets = loop.plane_stride(0);
  for (; loop.valid(); loop.next_plane()) {
    const T* items = from + loop.offset(1);
    T* targets = to + loop.offset(0);
    int32_t left = rows;
    if (to_step == 1 && next_items == 1) {
      // A transposition: several rows at once, of items that are neighbours.
      constexpr int32_t kRows = 8;
      for (; left >= kRows; left -= kRows) {
        for (int32_t i = 0; i < count; ++i) {
          for (int32_t r = 0; r < kRows; ++r) {
            targets[r * next_targets + i] = items[i * from_step + r];
          }
        }
        items += kRows;
        targets += kRows * next_targets;
      }
    }
    for (; left > 0; --left) {
      if (to_step == 1) {
        for (int32_t i = 0; i < count; ++i) targets[i] = items[i * from_step];
      } else {
        for (int32_t i = 0; i < count; ++i) {
          targets[i * to_step] = items[i * from_step];
        }
      }
      items += next_items;
      targets += next_targets;
    }
  }
}

/// Copies the `count` items that are at[...] items behind `from` to places side
/// by side.
__attribute__((noinline)) inline void gather_row(const void* from,
                                                 const int32_t* at,
                                                 int32_t count, void* to,
                                                 ScalarType dtype) {
  const Error known = switch_item<~0U>(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const items = static_cast<const T*>(from);
    T* target = static_cast<T*>(to);
    for (int32_t left = count; left > 0; --left) *target++ = items[*at++];
    return Error::Ok;
  });
  static_cast<void>(known);  // tensors have no other dtypes
}

/// to[...] = from[...] for all rows; tensor 0 of the loop is `to`, tensor 1 is
/// `from`, and the pointers are those of its offset 0.
__attribute__((noinline)) inline void move_rows(StridedLoop& loop,
                                                const void* from, void* to,
                                                ScalarType dtype) {
  if (kFavourSpeed) {
    loop.lengthen_rows();
    if (loop.row_stride(0) == 1 && loop.row_stride(1) == 1) {
      const size_t item = item_bytes(dtype);
      move_lines(loop, static_cast<const uint8_t*>(from),
                 static_cast<uint8_t*>(to), static_cast<ptrdiff_t>(item),
                 static_cast<size_t>(loop.row_size()) * item);
      return;
    }
    const Error known = switch_item<~0U>(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      move_planes(loop, static_cast<const T*>(from), static_cast<T*>(to));
      return Error::Ok;
    });
    static_cast<void>(known);  // tensors have no other dtypes
    return;
  }
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(dtype));
  for (; loop.valid(); loop.next()) {
    move_row(static_cast<const uint8_t*>(from) + loop.offset(1) * bytes,
             loop.row_stride(1),
             static_cast<uint8_t*>(to) + loop.offset(0) * bytes,
             loop.row_stride(0), loop.row_size(), dtype);
  }
}

/// out = self, of the same dtype and sizes, in any dim orders. Errors:
/// InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error move_all(const Tensor& self,
                                                Tensor& out) {
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  StridedLoop loop = loop_over(out, self);
  move_rows(loop, self.memory, out.memory, out.dtype);
  return Error::Ok;
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

/// A loop over items of `out`, which is tensor 0, in its memory order, and
/// those of another tensor. Sizes and strides are by dimension of `out`.
inline void loop_between(StridedLoop& loop, const Tensor& out,
                         const int32_t* sizes, const int32_t* out_strides,
                         const int32_t* strides) {
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(sizes[d], out_strides[d], strides[d]);
  }
}

/// Copies items of `from` at `view` to those of `out` from `out_offset` on,
/// with these strides. Both have the rank of `out` and `sizes`; `from` is where
/// the view's offset is 0.
__attribute__((noinline)) inline void move_between(
    Tensor& out, int32_t out_offset, const int32_t* out_strides,
    const int32_t* sizes, const void* from, const ItemView& view) {
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(item_bytes(out.dtype));
  StridedLoop loop;
  loop_between(loop, out, sizes, out_strides, view.stride);
  if (!loop.valid()) return;
  move_rows(loop, static_cast<const uint8_t*>(from) + view.offset * bytes,
            out.mutable_data<uint8_t>() + out_offset * bytes, out.dtype);
}

/// Copies the items of `from` at `view` to those of `out` from `out_offset` on.
/// Both have the rank of `out` and `sizes`, and `out` has its own strides.
__attribute__((noinline)) inline void move_view(Tensor& out, int32_t out_offset,
                                                const int32_t* sizes,
                                                const Tensor& from,
                                                const ItemView& view) {
  const Strides strides(out);
  move_between(out, out_offset, strides.at, sizes, from.memory, view);
}

/// out[...] = self[...] for tensors of the same dtype and sizes; nothing to do
/// where both are the same memory.
__attribute__((noinline)) inline void copy_items(const Tensor& self,
                                                 Tensor& out) {
  if (self.memory == out.memory && same_layout(self, out)) return;
  const Strides own(self);
  ItemView view{};
  for (int i = 0; i < self.dim; ++i) view.stride[i] = own[i];
  move_view(out, 0, self.dims, self, view);
}

}  // namespace orch
