// Indices that are items of tensors.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "util/check.h"
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

/// self[indices]: an index tensor, or none, for each dimension of `self`.
///
/// Index tensors are broadcast to each other; the dimensions they have together
/// take the place of those they index, if these are neighbours, and else come
/// first. Source: NumPy, "Advanced indexing".
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
  Error check() const;

  /// Where the items of a position begin: in a tensor with the sizes of `self`,
  /// which is indexed, and in one with those of the result. Strides by
  /// dimension. Checks the indices of the position. Errors: InvalidArgument.
  Error find(int32_t position, const int32_t* indexed_strides,
             const int32_t* result_strides, int32_t& indexed,
             int32_t& result) const;

  /// Calls fn(stride in self, stride in the result, size) for the dimensions of
  /// `self` that are not indexed, outermost first.
  template <typename Fn>
  void for_each_kept(const int32_t* indexed_strides,
                     const int32_t* result_strides, Fn fn) const {
    for (int d = 0, r = 0; d < self_->dim; ++d) {
      if (tensor(d) != nullptr) continue;
      if (r == first_) r += shared_rank_;
      fn(indexed_strides[d], result_strides[r], self_->size(d));
      ++r;
    }
  }

 private:
  /// The indices of a dimension; null if it has none.
  const Tensor* tensor(int dim) const {
    return dim < list_->size() ? (*list_)[dim] : nullptr;
  }

  const Tensor* self_ = nullptr;
  const TensorList* list_ = nullptr;
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
  ORCH_CHECK(indices.size() <= self.dim, Error::InvalidArgument);
  int indexed = 0;
  int last = 0;
  bool neighbours = true;
  for (int i = 0; i < indices.size(); ++i) {
    const Tensor* const index = indices[i];
    if (index == nullptr) continue;
    ORCH_CHECK(kIndices.has(index->dtype), Error::InvalidArgument);
    if (indexed == 0) first_ = i;
    neighbours = neighbours && (indexed == 0 || i == last + 1);
    last = i;
    ++indexed;
    if (index->dim > shared_rank_) shared_rank_ = index->dim;
  }
  if (!neighbours) first_ = 0;
  const int rank = self.dim - indexed + shared_rank_;
  ORCH_CHECK(rank <= kMaxDim, Error::InvalidArgument);
  rank_ = static_cast<size_t>(rank);
  int64_t positions = 1;
  for (int b = 0; b < shared_rank_; ++b) {
    int32_t size = 1;
    for (int i = 0; i < indices.size(); ++i) {
      if (indices[i] == nullptr) continue;
      const int own = b - (shared_rank_ - indices[i]->dim);
      if (own < 0 || indices[i]->size(own) == 1) continue;
      ORCH_CHECK(size == 1 || size == indices[i]->size(own),
                 Error::InvalidArgument);
      size = indices[i]->size(own);
    }
    shared_[b] = size;
    positions *= size;
    ORCH_CHECK(positions <= INT32_MAX, Error::ShapeTooLarge);
    sizes_[first_ + b] = size;
  }
  positions_ = static_cast<int32_t>(positions);
  for (int d = 0, r = 0; d < self.dim; ++d) {
    if (tensor(d) != nullptr) continue;
    if (r == first_) r += shared_rank_;
    sizes_[r++] = self.size(d);
  }
  return Error::Ok;
}

__attribute__((noinline)) inline Error Indexing::find(
    int32_t position, const int32_t* indexed_strides,
    const int32_t* result_strides, int32_t& indexed, int32_t& result) const {
  int32_t coordinates[kMaxDim];
  result = 0;
  for (int b = shared_rank_; b-- > 0;) {
    coordinates[b] = position % shared_[b];
    position /= shared_[b];
    result += coordinates[b] * result_strides[first_ + b];
  }
  indexed = 0;
  for (int d = 0; d < self_->dim; ++d) {
    const Tensor* const index = tensor(d);
    if (index == nullptr) continue;
    const Strides strides(*index);
    int32_t at = 0;
    for (int i = 0; i < index->dim; ++i) {
      if (index->size(i) != 1) {
        at += coordinates[shared_rank_ - index->dim + i] * strides[i];
      }
    }
    const int32_t size = self_->size(d);
    int64_t value = load_index(*index, at);
    if (value < 0) value += size;
    ORCH_CHECK(value >= 0 && value < size, Error::InvalidArgument);
    indexed += static_cast<int32_t>(value) * indexed_strides[d];
  }
  return Error::Ok;
}

inline Error Indexing::check() const {
  const int32_t strides[kMaxDim] = {};
  int32_t indexed = 0;
  int32_t result = 0;
  for (int32_t i = 0; i < positions_; ++i) {
    ORCH_TRY(find(i, strides, strides, indexed, result));
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
