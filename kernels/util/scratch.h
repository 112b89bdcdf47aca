// Scratch: memory that a kernel needs during its own call only.
#pragma once

#include <stddef.h>

#include "orch/error.h"
#include "orch/tensor.h"

namespace orch {

/// Whether a scratch tensor is as large as the kernel needs. Only builds with
/// `[scratch] runtime_check` look. Errors: InvalidArgument.
inline Error check_scratch(const Tensor& scratch, size_t bytes) {
#ifdef ORCH_CHECKS_SCRATCH
  ORCH_CHECK(scratch.nbytes() >= bytes, Error::InvalidArgument);
#else
  (void)scratch;
  (void)bytes;
#endif
  return Error::Ok;
}

}  // namespace orch
