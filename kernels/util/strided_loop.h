// Iteration over tensors of different strides.
#pragma once

#include <stdint.h>

#include "orch/tensor.h"
#include "util/check.h"

namespace orch {

// Functions are not inlined here: one copy serves all kernels of a program.

/// Walks up to three tensors at once, row by row.
///
///     StridedLoop loop;
///     ... loop.add(size, {stride of tensor 0, of tensor 1, ...}) ...
///     for (; loop.valid(); loop.next()) {
///       for (int32_t i = 0; i < loop.row_size(); ++i)
///         ... item loop.offset(0) + i * loop.row_stride(0) of tensor 0 ...
///     }
///
/// Neighbouring dimensions that all tensors step through evenly become one, so
/// tensors that are laid out alike are a single row.
class StridedLoop {
 public:
  static constexpr int kTensors = 3;

  StridedLoop() { dims_[0] = {1, 0, {}}; }
  /// One row of items that lie side by side in all tensors.
  explicit StridedLoop(int32_t size) : valid_(size != 0) {
    dims_[0] = {size, 0, {1, 1, 1}};
  }

  /// Adds a dimension inside of those added before. Strides in items; 0 repeats
  /// an item, a tensor that is not there has 0 throughout.
  void add(int32_t size, int32_t stride0, int32_t stride1, int32_t stride2 = 0);

  /// Makes rows longer where they are short, by taking another dimension for
  /// them. Before the first row, if their order does not matter.
  void lengthen_rows();

  bool valid() const { return valid_; }
  /// Goes to the next row.
  void next();
  /// Rows that lie evenly, beginning with this one where that was the first or
  /// next_plane() led to it, and from each to the next.
  int32_t plane_rows() const { return last_ == 0 ? 1 : dims_[last_ - 1].size; }
  int32_t plane_stride(int tensor) const {
    return last_ == 0 ? 0 : dims_[last_ - 1].stride[tensor];
  }
  /// Goes to the row behind these.
  void next_plane();
  /// Begins again after the end. Only for a loop that has items.
  void restart() { valid_ = true; }
  /// At least 1 where the loop is valid.
  int32_t row_size() const { return dims_[last_].size; }
  int32_t row_stride(int tensor) const { return dims_[last_].stride[tensor]; }
  /// Of the first item of the row, in items.
  int32_t offset(int tensor) const { return offset_[tensor]; }

 private:
  struct Dim {
    int32_t size;
    int32_t index;
    int32_t stride[kTensors];
  };

  Dim dims_[kMaxDim];  // the first last_ + 1 are set
  int last_ = 0;
  int32_t offset_[kTensors] = {};
  bool valid_ = true;
};

__attribute__((noinline)) inline void StridedLoop::add(int32_t size,
                                                       int32_t stride0,
                                                       int32_t stride1,
                                                       int32_t stride2) {
  const Dim dim = {size, 0, {stride0, stride1, stride2}};
  if (size == 0) valid_ = false;
  if (size == 1 || !valid_) return;
  Dim& outer = dims_[last_];
  bool even = true;
  for (int t = 0; t < kTensors; ++t) {
    // An item that far away exists, or is one step past the last. Steps may be
    // large, as those of slices: unsigned, since the sum may be past 2^31.
    even = even && static_cast<uint32_t>(outer.stride[t]) ==
                       static_cast<uint32_t>(dim.stride[t]) *
                           static_cast<uint32_t>(size);
  }
  if (outer.size == 1) {
    outer = dim;
  } else if (even) {
    const int32_t rows = outer.size;
    outer = dim;
    outer.size = rows * size;
  } else {
    dims_[++last_] = dim;
  }
}

__attribute__((noinline)) inline void StridedLoop::lengthen_rows() {
  if (row_size() >= 8) return;  // going to the next row hardly counts
  int longest = last_;
  for (int d = 0; d < last_; ++d) {
    if (dims_[d].size > dims_[longest].size) longest = d;
  }
  const Dim row = dims_[longest];
  dims_[longest] = dims_[last_];
  dims_[last_] = row;
}

__attribute__((noinline)) inline void StridedLoop::next() {
  for (int d = last_; d-- > 0;) {
    Dim& dim = dims_[d];
    const bool wraps = ++dim.index == dim.size;
    const int32_t steps = wraps ? 1 - dim.size : 1;
    for (int t = 0; t < kTensors; ++t) offset_[t] += steps * dim.stride[t];
    if (!wraps) return;
    dim.index = 0;
  }
  valid_ = false;
}

inline void StridedLoop::next_plane() {
  if (last_ == 0) {
    valid_ = false;
    return;
  }
  --last_;  // rows become items
  next();
  ++last_;
}

/// A loop over the items of `out` in memory order and the items of `self` with
/// the same indices. Both have the same sizes.
__attribute__((noinline)) inline StridedLoop loop_over(const Tensor& out,
                                                       const Tensor& self) {
  if (kFavourSpeed && out.contiguous() && self.contiguous()) {
    return StridedLoop(out.numel());
  }
  const Strides out_strides(out);
  const Strides self_strides(self);
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(out.size(d), out_strides[d], self_strides[d]);
  }
  return loop;
}

}  // namespace orch
