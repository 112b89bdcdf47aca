// Sizes of a view: another shape for the same items.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/value.h"

namespace orch {

/// Sizes of a view of `numel` items; one of `list` may be -1, for as many as
/// are left. Room for `list.size()` of them must be there. Errors:
/// InvalidArgument; ShapeTooLarge.
__attribute__((noinline)) inline Error view_sizes(const IntList& list,
                                                  int32_t numel,
                                                  int32_t* sizes) {
  int open = -1;
  int64_t count = 1;
  for (int i = 0; i < list.size(); ++i) {
    const int64_t size = list[i];
    if (size == -1 && open < 0) {
      open = i;
      continue;
    }
    ORCH_CHECK(size >= 0, Error::InvalidArgument);
    ORCH_CHECK(size <= INT32_MAX, Error::ShapeTooLarge);
    count *= size;
    ORCH_CHECK(count <= INT32_MAX, Error::ShapeTooLarge);
    sizes[i] = static_cast<int32_t>(size);
  }
  if (open >= 0) {
    ORCH_CHECK(count != 0, Error::InvalidArgument);
    sizes[open] = numel / static_cast<int32_t>(count);
    count *= sizes[open];
  }
  ORCH_CHECK(count == numel, Error::InvalidArgument);
  return Error::Ok;
}

}  // namespace orch
