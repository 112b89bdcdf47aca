// Indices that are items of tensors.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/check.h"
#include "util/isa.h"
#include "util/strided_loop.h"

namespace orch {

/// Dtypes of index tensors.
inline constexpr DtypeSet kIndices =
    dtype_set(ScalarType::Int, ScalarType::Long);

/// An item of an index tensor, Int or Long, not yet checked.
inline int64_t load_index(const Tensor& indices, int32_t offset) {
  return indices.dtype == ScalarType::Int ? indices.data<int32_t>()[offset]
                                          : indices.data<int64_t>()[offset];
}

/// An item of an index tensor for a dimension of `size` items, counted from its
/// first one; -1 if there is none.
inline int32_t read_index(const Tensor& indices, int32_t offset, int32_t size) {
  int64_t value = load_index(indices, offset);
  if (value < 0) value += size;
  return value >= 0 && value < size ? static_cast<int32_t>(value) : -1;
}

/// Whether `value` is an index of `size` items; size is not negative.
template <typename I>
ORCH_ALWAYS_INLINE bool is_index(I value, int32_t size) {
  if (sizeof(void*) == 8) {
    return static_cast<uint64_t>(int64_t{value}) < static_cast<uint64_t>(size);
  }
  // Without arithmetic of 64 bits.
  if (sizeof(I) == 8 && static_cast<int64_t>(value) >> 32 != 0) return false;
  return static_cast<uint32_t>(value) < static_cast<uint32_t>(size);
}

/// Calls fn(items), the first item of an index tensor as its type has it: loops
/// do not look at the dtype again.
template <typename Fn>
auto with_indices(const Tensor& indices, Fn fn) {
  return indices.dtype == ScalarType::Int ? fn(indices.data<int32_t>())
                                          : fn(indices.data<int64_t>());
}

/// An index of `size` items that may be negative, counted from the first one.
template <typename I>
ORCH_ALWAYS_INLINE I counted_up(I value, int32_t size) {
  return value < 0 ? static_cast<I>(value + size) : value;
}

/// Whether all items are at least `low`, which is not above 0, and below
/// `size`.
template <typename I>
ORCH_HOT bool are_within(const I* items, int32_t count, int32_t low,
                         int32_t size) {
  if (kFavourSpeed && sizeof(void*) == 8) {
    // The sign shows it, of all of them together.
    uint64_t outside = 0;
    const uint64_t last = static_cast<uint64_t>(int64_t{size} - 1 - low);
    for (int32_t i = 0; i < count; ++i) {
      const uint64_t above =
          static_cast<uint64_t>(items[i]) - static_cast<uint64_t>(int64_t{low});
      outside |= above | (last - above);
    }
    return outside >> 63 == 0;
  }
  for (; count > 0; --count) {
    const I item = *items++;
    if (is_index(item, size)) continue;
    if (item >= 0 || item < low) return false;
  }
  return true;
}

/// Whether all items are indices of `size` items.
template <typename I>
ORCH_HOT bool are_below(const I* items, int32_t count, int32_t size) {
  for (; count > 0; --count) {
    if (!is_index(*items++, size)) return false;
  }
  return true;
}

/// Rows of `bytes` bytes that lie side by side, and how far it is to the next:
/// of a tensor that an index selects rows of, and of another one.
struct IndexedRows {
  uint8_t* indexed;
  ptrdiff_t indexed_step;
  uint8_t* other;
  ptrdiff_t other_step;
  size_t bytes;
};

/// Copies row number items[i] of the indexed tensor, which has `size`, to row i
/// of the other one, or with kInto from there. kNegative: indices may be
/// negative. Errors: InvalidArgument, where an index that was checked before
/// has changed, since memories overlap.
template <bool kInto, bool kNegative, typename I>
ORCH_HOT Error move_indexed(const I* items, int32_t step, int32_t count,
                            int32_t size, const IndexedRows& rows) {
  uint8_t* const indexed = rows.indexed;
  const ptrdiff_t indexed_step = rows.indexed_step;
  uint8_t* other = rows.other;
  const ptrdiff_t other_step = rows.other_step;
  const size_t bytes = rows.bytes;
  for (; count > 0; --count) {
    const I index = kNegative ? counted_up(*items, size) : *items;
    ORCH_CHECK_DATA(is_index(index, size), Error::InvalidArgument);
    uint8_t* const row = indexed + static_cast<ptrdiff_t>(index) * indexed_step;
    uint8_t* const to = kInto ? row : other;
    const uint8_t* const from = kInto ? other : row;
    if (bytes == 4) {
      memcpy(to, from, 4);
    } else {
      memmove(to, from, bytes);
    }
    items += step;
    other += other_step;
  }
  return Error::Ok;
}

/// are_below() for an index tensor.
__attribute__((noinline)) inline bool are_below(const Tensor& indices,
                                                int32_t size) {
  return with_indices(indices, [&](auto* items) {
    return kFavourSpeed && sizeof(void*) == 8
               ? are_within(items, indices.numel(), 0, size)
               : are_below(items, indices.numel(), size);
  });
}

/// are_within() for an index tensor; with fewer bytes where these count more.
inline bool are_within(const Tensor& indices, int32_t low, int32_t size) {
  const int32_t count = indices.numel();
  if (kFavourSpeed) {
    return with_indices(indices, [&](auto* items) {
      return are_within(items, count, low, size);
    });
  }
  for (int32_t i = 0; i < count; ++i) {
    const int64_t value = load_index(indices, i);
    if (value < low || value >= size) return false;
  }
  return true;
}

/// Dtypes of masks: an index for each dimension of theirs, which together are
/// the positions of the items that are not 0, row by row.
inline constexpr DtypeSet kMasks =
    dtype_set(ScalarType::Bool, ScalarType::Byte);

/// Whether item number `at` of a mask, counted row by row, is not 0.
__attribute__((noinline)) inline bool load_mask(const Tensor& mask,
                                                int32_t at) {
  if (!mask.contiguous()) {
    const Strides strides(mask);
    int32_t offset = 0;
    for (int d = mask.dim; d-- > 0;) {
      offset += at % mask.size(d) * strides[d];
      at /= mask.size(d);
    }
    at = offset;
  }
  return mask.data<uint8_t>()[at] != 0;
}

/// self[indices]: for each dimension of `self` an index tensor or none, or a
/// mask for as many dimensions as it has.
///
/// Index tensors are broadcast to each other, and masks are as many of them as
/// they have dimensions; the dimensions they have together take the place of
/// those they index, if these are neighbours, and else come first. Source:
/// NumPy, "Advanced indexing".
///
/// A position is a place in the broadcast indices, counted row by row.
class Indexing {
 public:
  /// Checks dtypes and sizes, but no index. The list must outlive this.
  /// Errors: InvalidArgument, ShapeTooLarge.
  Error read(const Tensor& self, const TensorList& indices);

  /// Sizes of self[indices].
  Span<const int32_t> sizes() const { return {sizes_, rank_}; }
  int32_t positions() const { return positions_; }

  /// Checks that all indices are in range. Errors: InvalidArgument.
  Error check();

  /// Where the items of a position begin: in a tensor with the sizes of `self`,
  /// which is indexed, and in one with those of the result. Strides by
  /// dimension. Checks the indices of the position. Positions should ascend, as
  /// masks are searched for them. Errors: InvalidArgument.
  Error find(int32_t position, const int32_t* indexed_strides,
             const int32_t* result_strides, int32_t& indexed, int32_t& result) {
    if (kFavourSpeed && only() != nullptr) {
      const int32_t index = read_index(*only(), position, self_->size(0));
      ORCH_CHECK_DATA(index >= 0, Error::InvalidArgument);
      indexed = index * indexed_strides[0];
      result = position * result_strides[0];
      return Error::Ok;
    }
    return find_any(position, indexed_strides, result_strides, indexed, result);
  }

  /// The index, if it is the only one and has one dimension, else null. Its
  /// items follow each other: item n is that of position n.
  const Tensor* only() const {
    return shared_rank_ == 1 && list_->size() == 1 && !is_mask(*(*list_)[0])
               ? (*list_)[0]
               : nullptr;
  }

  /// find() and the copy of the row there, of `bytes` bytes, for all positions,
  /// if only() is not null; kInto: into `self`. Errors: InvalidArgument.
  template <bool kInto>
  Error move_all(const IndexedRows& rows) const {
    return with_indices(*only(), [&](auto* items) {
      return move_indexed<kInto, true>(items, 1, positions_, self_->size(0),
                                       rows);
    });
  }

  /// Calls fn(stride in self, stride in the result, size) for the dimensions of
  /// `self` that are not indexed, outermost first.
  template <typename Fn>
  void for_each_kept(const int32_t* indexed_strides,
                     const int32_t* result_strides, Fn fn) const {
    for (int d = 0, r = 0; d < self_->dim; ++d) {
      if (is_indexed(d)) continue;
      if (r == first_) r += shared_rank_;
      fn(indexed_strides[d], result_strides[r], self_->size(d));
      ++r;
    }
  }

 private:
  static bool is_mask(const Tensor& index) { return kMasks.has(index.dtype); }
  bool is_indexed(int dim) const { return ((indexed_ >> dim) & 1U) != 0; }

  /// A mask, and the last of its items that was found.
  struct Mask {
    int32_t count;  // of the items that are not 0
    int32_t number;
    int32_t at;
  };
  Error find_in_mask(int list_index, int32_t number);
  Error find_any(int32_t position, const int32_t* indexed_strides,
                 const int32_t* result_strides, int32_t& indexed,
                 int32_t& result);

  const Tensor* self_ = nullptr;
  const TensorList* list_ = nullptr;
  Mask masks_[kMaxDim];      // by place in the list
  unsigned indexed_ = 0;     // a bit for each dimension of self
  int32_t shared_[kMaxDim];  // sizes the index tensors have together
  int shared_rank_ = 0;
  int first_ = 0;  // dimension of the result where these begin
  int32_t positions_ = 0;
  int32_t sizes_[kMaxDim];
  size_t rank_ = 0;
};

__attribute__((noinline)) inline Error Indexing::read(
    const Tensor& self, const TensorList& indices) {
  self_ = &self;
  list_ = &indices;
  int indexed = 0;
  int next = 0;  // dimension of `self`
  int end = 0;   // behind the last dimension with indices
  bool neighbours = true;
  ORCH_CHECK(indices.size() <= self.dim, Error::InvalidArgument);
  for (int i = 0; i < indices.size(); ++i) {
    const Tensor* const index = indices[i];
    int covers = 1;
    if (index != nullptr) {
      ORCH_CHECK((kIndices | kMasks).has(index->dtype), Error::InvalidArgument);
      int rank = index->dim;
      if (is_mask(*index)) {
        covers = rank;
        rank = 1;
        ORCH_CHECK(covers > 0 && next + covers <= self.dim,
                   Error::InvalidArgument);
        for (int d = 0; d < covers; ++d) {
          ORCH_CHECK(index->size(d) == self.size(next + d),
                     Error::InvalidArgument);
        }
        masks_[i] = {0, -1, -1};
        for (int32_t at = 0, count = index->numel(); at < count; ++at) {
          if (load_mask(*index, at)) ++masks_[i].count;
        }
      }
      if (indexed == 0) first_ = next;
      neighbours = neighbours && (indexed == 0 || next == end);
      end = next + covers;
      indexed += covers;
      indexed_ |= ((1U << covers) - 1) << next;
      if (rank > shared_rank_) shared_rank_ = rank;
    }
    next += covers;
  }
  ORCH_CHECK(next <= self.dim, Error::InvalidArgument);
  if (!neighbours) first_ = 0;
  const int rank = self.dim - indexed + shared_rank_;
  ORCH_CHECK(rank <= kMaxDim, Error::InvalidArgument);
  rank_ = static_cast<size_t>(rank);
  int64_t positions = 1;
  for (int b = 0; b < shared_rank_; ++b) {
    int32_t size = 1;
    for (int i = 0; i < indices.size(); ++i) {
      const Tensor* const index = indices[i];
      if (index == nullptr) continue;
      const bool masked = is_mask(*index);
      const int own = b - (shared_rank_ - (masked ? 1 : index->dim));
      if (own < 0) continue;
      const int32_t own_size = masked ? masks_[i].count : index->size(own);
      if (own_size == 1) continue;
      ORCH_CHECK(size == 1 || size == own_size, Error::InvalidArgument);
      size = own_size;
    }
    shared_[b] = size;
    positions *= size;
    ORCH_CHECK(positions <= INT32_MAX, Error::ShapeTooLarge);
    sizes_[first_ + b] = size;
  }
  positions_ = static_cast<int32_t>(positions);
  for (int d = 0, r = 0; d < self.dim; ++d) {
    if (is_indexed(d)) continue;
    if (r == first_) r += shared_rank_;
    sizes_[r++] = self.size(d);
  }
  return Error::Ok;
}

/// Goes to the item of a mask with this number among those that are not 0.
/// Errors: InvalidArgument (there is none any more).
__attribute__((noinline)) inline Error Indexing::find_in_mask(int list_index,
                                                              int32_t number) {
  const Tensor& tensor = *(*list_)[list_index];
  Mask& mask = masks_[list_index];
  if (mask.count == 1) number = 0;  // broadcast
  if (number < mask.number) {
    mask.number = -1;
    mask.at = -1;
  }
  const int32_t end = tensor.numel();
  for (; mask.number < number; ++mask.number) {
    do {
      ++mask.at;
      ORCH_CHECK_DATA(mask.at < end, Error::InvalidArgument);
    } while (!load_mask(tensor, mask.at));
  }
  return Error::Ok;
}

__attribute__((noinline)) inline Error Indexing::find_any(
    int32_t position, const int32_t* indexed_strides,
    const int32_t* result_strides, int32_t& indexed, int32_t& result) {
  int32_t coordinates[kMaxDim];
  result = 0;
  for (int b = shared_rank_; b-- > 0;) {
    coordinates[b] = position;
    if (b > 0) {
      coordinates[b] = position % shared_[b];
      position /= shared_[b];
    }
    result += coordinates[b] * result_strides[first_ + b];
  }
  indexed = 0;
  for (int item = 0, d = 0; item < list_->size(); ++item, ++d) {
    const Tensor* const index = (*list_)[item];
    if (index == nullptr) continue;
    if (is_mask(*index)) {
      ORCH_TRY_DATA(find_in_mask(item, coordinates[shared_rank_ - 1]));
      int32_t at = masks_[item].at;
      for (int i = index->dim; i-- > 0;) {
        indexed += at % index->size(i) * indexed_strides[d + i];
        at /= index->size(i);
      }
      d += index->dim - 1;
      continue;
    }
    const Strides strides(*index);
    int32_t at = 0;
    for (int i = 0; i < index->dim; ++i) {
      if (index->size(i) != 1) {
        at += coordinates[shared_rank_ - index->dim + i] * strides[i];
      }
    }
    const int32_t value = read_index(*index, at, self_->size(d));
    ORCH_CHECK_DATA(value >= 0, Error::InvalidArgument);
    indexed += value * indexed_strides[d];
  }
  return Error::Ok;
}

__attribute__((noinline)) inline Error Indexing::check() {
  if (positions_ == 0) return Error::Ok;
  for (int item = 0, d = 0; item < list_->size(); ++item, ++d) {
    const Tensor* const index = (*list_)[item];
    if (index == nullptr) continue;
    if (is_mask(*index)) {
      d += index->dim - 1;
      continue;
    }
    const int32_t size = self_->size(d);
    ORCH_CHECK_DATA(are_within(*index, -size, size), Error::InvalidArgument);
  }
  return Error::Ok;
}

/// Whether `out` can be given these sizes without changing those of a tensor in
/// the list that shares them.
inline bool keeps_sizes(const TensorList& inputs, const Tensor& out,
                        Span<const int32_t> sizes) {
  for (int i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr && !keeps_sizes(*inputs[i], out, sizes)) {
      return false;
    }
  }
  return true;
}

}  // namespace orch
