// Which instructions the kernels of this build may use.
#pragma once

#include "util/isa.h"

namespace orch::cortex_m {

/// In a branch that is hardly ever taken: keeps clang from computing both ways
/// and choosing.
ORCH_ALWAYS_INLINE void stay_branch() { asm volatile(""); }

}  // namespace orch::cortex_m
