// Scratch: memory that a kernel needs during its own call only.
#pragma once

#include <stddef.h>

#include "orch/error.h"
#include "orch/tensor.h"

/// 1 in builds whose kernels compare, `[scratch] runtime_check`.
#ifndef ORCH_CHECKS_SCRATCH
#define ORCH_CHECKS_SCRATCH 0
#endif

namespace orch {

/// Whether a scratch tensor has the bytes that a kernel is about to write.
/// Kernels call it before they do; without the check it is nothing. Errors:
/// ScratchTooSmall.
inline Error check_scratch(const Tensor& scratch, size_t bytes) {
  if constexpr (ORCH_CHECKS_SCRATCH != 0) {
    ORCH_CHECK_DATA(scratch.nbytes() >= bytes, Error::ScratchTooSmall);
  }
  return Error::Ok;
}

}  // namespace orch
