// Items that are found by an index along one dimension: gather and scatter.
#pragma once

#include <stdint.h>

#include "util/check.h"
#include "util/indexing.h"
#include "util/move_items.h"
#include "util/strided_loop.h"

namespace orch {

/// The pairs of items that an index tensor makes of two tensors: item
/// index[c] of `indexed` along `dim`, at coordinates c in all other dimensions,
/// and the item of `other` at coordinates c.
///
/// A tensor without dimensions is one with a single dimension of size 1.
struct AlongDim {
  const Tensor* index;
  int32_t size;  // of the dimension
  int32_t step;  // of `indexed` along it
  /// Over the index; tensor 0 is the index, 1 `indexed` at 0 along the
  /// dimension, 2 `other`. The dimension ascends in it.
  StridedLoop loop;

  /// Checks arguments, and all indices. `other` may be null. Errors:
  /// InvalidArgument.
  static Error check(const Tensor& indexed, int64_t dim, const Tensor& index,
                     const Tensor* other);

  /// Trusts that check() was successful. `other` has at least the sizes of the
  /// index, or is the index.
  AlongDim(const Tensor& indexed, int64_t dim, const Tensor& index_tensor,
           const Tensor& other);

  /// Calls fn(at, k) for each pair: offsets of the items in `indexed` and in
  /// `other`. Errors: InvalidArgument (where memories overlap, what was written
  /// may be an index).
  template <typename Fn>
  Error each(Fn fn) {
    return with_indices(*index,
                        [&](auto* items) { return each_of(items, fn); });
  }

 private:
  template <typename I, typename Fn>
  ORCH_HOT Error each_of(const I* items, Fn fn) {
    for (; loop.valid(); loop.next()) {
      const I* item = items + loop.offset(0);
      int32_t first = loop.offset(1);
      int32_t k = loop.offset(2);
      const int32_t item_step = loop.row_stride(0);
      const int32_t first_step = loop.row_stride(1);
      const int32_t k_step = loop.row_stride(2);
      for (int32_t left = loop.row_size(); left > 0; --left) {
        const I value = *item;
        ORCH_CHECK_DATA(is_index(value, size), Error::InvalidArgument);
        fn(first + static_cast<int32_t>(value) * step, k);
        item += item_step;
        first += first_step;
        k += k_step;
      }
    }
    return Error::Ok;
  }
};

__attribute__((noinline)) inline Error AlongDim::check(const Tensor& indexed,
                                                       int64_t dim,
                                                       const Tensor& index,
                                                       const Tensor* other) {
  int along;
  ORCH_CHECK(kIndices.has(index.dtype), Error::InvalidArgument);
  ORCH_TRY(read_dim(dim, indexed.dim, along));
  const int32_t count = index.numel();
  if (count == 0) return Error::Ok;
  // Ranks 0 and 1 are alike.
  const int rank = indexed.dim == 0 ? 1 : indexed.dim;
  ORCH_CHECK(rank == (index.dim == 0 ? 1 : index.dim), Error::InvalidArgument);
  ORCH_CHECK(other == nullptr || rank == (other->dim == 0 ? 1 : other->dim),
             Error::InvalidArgument);
  for (int d = 0; d < index.dim; ++d) {
    const int32_t needed = index.size(d);
    const int32_t present = indexed.dim == 0 ? 1 : indexed.size(d);
    ORCH_CHECK(d == along || needed <= present, Error::InvalidArgument);
    ORCH_CHECK(
        other == nullptr || needed <= (other->dim == 0 ? 1 : other->size(d)),
        Error::InvalidArgument);
  }
  const int32_t size = indexed.dim == 0 ? 1 : indexed.size(along);
  // With an index of rank 0 nothing compared the sizes so far.
  ORCH_CHECK(other == nullptr || other->numel() > 0, Error::InvalidArgument);
  return are_below(index, size) ? Error::Ok : Error::InvalidArgument;
}

__attribute__((noinline)) inline AlongDim::AlongDim(const Tensor& indexed,
                                                    int64_t dim,
                                                    const Tensor& index_tensor,
                                                    const Tensor& other)
    : index(&index_tensor) {
  const int along = static_cast<int>(dim < 0 ? dim + indexed.dim : dim);
  const Strides at_index(index_tensor);
  const Strides at_indexed(indexed);
  const Strides at_other(other);
  size = indexed.dim == 0 ? 1 : indexed.size(along);
  step = indexed.dim == 0 ? 0 : at_indexed[along];
  for (int i = 0; i < index_tensor.dim; ++i) {
    const int d = index_tensor.order()[i];
    loop.add(index_tensor.size(d), at_index[d],
             d == along || d >= indexed.dim ? 0 : at_indexed[d],
             d >= other.dim ? 0 : at_other[d]);
  }
}

/// out = self, before items of `src`, or a number where it is null, go to the
/// places of `index`; checks all of them. Errors: InvalidArgument,
/// ShapeTooLarge.
__attribute__((noinline)) inline Error copy_to_scatter(const Tensor& self,
                                                       int64_t dim,
                                                       const Tensor& index,
                                                       const Tensor* src,
                                                       Tensor& out) {
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY_DATA(AlongDim::check(self, dim, index, src));
  const Tensor& other = src == nullptr ? index : *src;
  ORCH_CHECK(keeps_sizes(index, out, self.sizes()) &&
                 keeps_sizes(other, out, self.sizes()),
             Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  copy_items(self, out);
  return Error::Ok;
}

}  // namespace orch
