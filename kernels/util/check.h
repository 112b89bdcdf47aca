// Checks of arguments: sizes, dimensions, lists of integers.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/favour.h"
#include "orch/tensor.h"
#include "orch/value.h"

namespace orch {

/// Shortcuts that cost flash are for products with optimize = "speed". They do
/// not show in any bit of an output.
inline constexpr bool kFavourSpeed = ORCH_FAVOUR_SPEED != 0;

/// same_sizes where the call would cost more than the comparison.
inline bool same_sizes_inline(const Tensor& a, const Tensor& b) {
  if (a.dim != b.dim) return false;
  for (int i = 0; i < a.dim; ++i) {
    if (a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

/// Gives `out` its sizes, which follow from items of tensors; else as
/// resize_output().
template <typename... Tensors>
Error resize_counted(Tensor& out, Span<const int32_t> sizes,
                     const Tensors&... inputs) {
  if constexpr (kFavourSpeed) {
    bool same = sizes.size() == out.dim;
    for (int i = 0; same && i < out.dim; ++i) {
      same = sizes[static_cast<size_t>(i)] == out.dims[i];
    }
    if (same) return Error::Ok;
  }
  if (kDynamicSizes && ((inputs.dims == out.dims) || ... || false)) {
    ORCH_CHECK_DATA(sizes.size() == out.dim, Error::InvalidArgument);
    for (int i = 0; i < out.dim; ++i) {
      ORCH_CHECK_DATA(sizes[static_cast<size_t>(i)] == out.dims[i],
                      Error::InvalidArgument);
    }
  }
  return resize(out, sizes);
}

/// Gives `out` its sizes.
///
/// An input may share its sizes with the output, be it the same value or one
/// that a move made so, only if they stay: what was checked of it before would
/// not hold any more. Errors: those of `resize`; InvalidArgument.
template <typename... Tensors>
Error resize_output(Tensor& out, Span<const int32_t> sizes,
                    const Tensors&... inputs) {
  if constexpr (kProvedCalls) {
    return Error::Ok;  // it has them
  } else {
    return resize_counted(out, sizes, inputs...);
  }
}

/// The same where no input has to be looked at. Errors: those of `resize`.
inline Error set_sizes(Tensor& out, Span<const int32_t> sizes) {
  return kProvedCalls ? Error::Ok : resize(out, sizes);
}

/// Whether `out` can be given these sizes without changing those of an input
/// that shares them; for the inputs in a list, before `resize_output`.
__attribute__((noinline)) inline bool keeps_sizes(const Tensor& input,
                                                  const Tensor& out,
                                                  Span<const int32_t> sizes) {
  if (!kDynamicSizes || input.dims != out.dims) return true;
  bool same = sizes.size() == input.dim;
  for (int i = 0; same && i < input.dim; ++i) {
    same = sizes[static_cast<size_t>(i)] == input.dims[i];
  }
  return same;
}

/// An index of a dimension, counted from the end if negative. A tensor without
/// dimensions has index 0. Errors: InvalidArgument.
inline Error read_dim(int64_t value, int rank, int& dim) {
  const int64_t count = rank == 0 ? 1 : rank;
  ORCH_CHECK(value >= -count && value < count, Error::InvalidArgument);
  dim = static_cast<int>(value < 0 ? value + count : value);
  return Error::Ok;
}

/// A list of different dimensions as a set of bits. Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_dims(const IntList& list, int rank,
                                                 unsigned& dims) {
  dims = 0;
  for (int i = 0; i < list.size(); ++i) {
    int dim = 0;
    ORCH_TRY(read_dim(list[i], rank, dim));
    ORCH_CHECK(((dims >> dim) & 1U) == 0, Error::InvalidArgument);
    dims |= 1U << dim;
  }
  return Error::Ok;
}

/// Largest window parameter and padded extent: sums of two fit in 32 bits.
inline constexpr int32_t kMaxExtent = 1 << 30;

/// An integer between `low` and kMaxExtent. Errors: InvalidArgument.
inline Error read_int(int64_t value, int32_t low, int32_t& out) {
  ORCH_CHECK(value >= low && value <= kMaxExtent, Error::InvalidArgument);
  out = static_cast<int32_t>(value);
  return Error::Ok;
}

/// Gives `out` the sizes of a list. Errors: InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error resize_to_list(Tensor& out,
                                                      const IntList& list) {
  ORCH_CHECK(list.size() == out.dim, Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < out.dim; ++i) ORCH_TRY(read_int(list[i], 0, sizes[i]));
  return resize_output(out, {sizes, out.dim});
}

/// Copies a list of `count` integers; a single one stands for all. Each must be
/// between `low` and kMaxExtent. Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_ints(const IntList& list, int count,
                                                 int32_t low, int32_t* values) {
  ORCH_CHECK(list.size() == count || list.size() == 1, Error::InvalidArgument);
  for (int i = 0; i < count; ++i) {
    const int64_t value = list[list.size() == 1 ? 0 : i];
    ORCH_TRY(read_int(value, low, values[i]));
  }
  return Error::Ok;
}

}  // namespace orch
