// Slices as Python reads them.
#pragma once

#include <stdint.h>

#include "orch/value.h"
#include "util/check.h"

namespace orch {

/// A slice of one dimension: `count` items from `start` on.
struct Slice {
  int dim;
  int32_t start;
  int32_t step;
  int32_t count;
};

/// A bound of a slice: counted from the end if negative, limited to 0 and
/// `size`.
inline int32_t slice_bound(int64_t value, int32_t size) {
  if (value < 0) value += size;
  if (value < 0) return 0;
  return value < size ? static_cast<int32_t>(value) : size;
}

/// Reads four arguments from `first` on: int dim, int? start, int? end, int
/// step. Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_slice(const Args& args, int first,
                                                  const Tensor& self,
                                                  Slice& slice) {
  ORCH_CHECK(self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(first), self.dim, slice.dim));
  const int64_t wide_step = args.integer(first + 3);
  ORCH_CHECK(wide_step > 0, Error::InvalidArgument);
  const int32_t size = self.size(slice.dim);
  const int32_t start =
      args.has(first + 1) ? slice_bound(args.integer(first + 1), size) : 0;
  const int32_t end =
      args.has(first + 2) ? slice_bound(args.integer(first + 2), size) : size;
  // A step past the end gives one item, whatever its length.
  const int32_t step = wide_step < size ? static_cast<int32_t>(wide_step)
                       : size > 0       ? size
                                        : 1;
  slice.start = start;
  slice.count = end > start ? (end - start - 1) / step + 1 : 0;
  // Of one item the step is not used, and could be too large.
  slice.step = slice.count > 1 ? step : 1;
  return Error::Ok;
}

}  // namespace orch
