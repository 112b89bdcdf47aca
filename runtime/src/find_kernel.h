// Finding the kernel that serves a call.
#pragma once

#include "orch/error.h"
#include "orch/kernel.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

/// The first entry of the table that serves a call of `base`,
/// "namespace::base", and `overload`: kinds, dtypes and kernel key fit. If
/// there is none, the error says how near the nearest came: OperatorMissing,
/// InvalidProgram (kinds), DtypeNotSelected.
Error find_kernel(KernelTable kernels, Span<const char> base,
                  Span<const char> overload, const Args& args,
                  KernelFn& function);

}  // namespace orch
