// What the build gives kernels for calls that it prepared.
//
// Members have the names, and the order, that
// orchestrator/method/passes/preparing/ writes: addresses first, then numbers
// of 32 bits.
#pragma once

#include "orch/prepared.h"

namespace orch::cortex_m {

/// A call with packed weights (packed.h).
struct PackedCall : PreparedCall {
  const void* input;
  const void* packed;
  void* scratch;
  void* out;
};

}  // namespace orch::cortex_m
