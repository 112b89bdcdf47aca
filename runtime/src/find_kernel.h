// Finding the kernel that serves a call.
#pragma once

#include "orch/error.h"
#include "orch/kernel.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

/// Gives the last argument of a call, if it is the number that the call
/// returns, the kind that its kernels give.
///
/// Programs declare every such number as an Int. That does not say what it is:
/// the exporter leaves it to the kernel. What is declared otherwise stays. A
/// result that the schema calls Scalar is a double if an argument is one, else
/// an int unless all are bools; the dtype counts for a tensor.
void settle_result(KernelTable kernels, Span<const char> base,
                   Span<const char> overload, const Args& args);

/// The first entry of the table that serves a call of `base`,
/// "namespace::base", and `overload`: kinds, dtypes and kernel key fit. If
/// there is none, the error says how near the nearest came: OperatorMissing,
/// InvalidProgram (kinds), DtypeNotSelected.
///
/// `first` is 0, or what an earlier call of the same operator has left there:
/// one more than the place of the first kernel with its name.
Error find_kernel(KernelTable kernels, Span<const char> base,
                  Span<const char> overload, const Args& args, uint8_t& first,
                  KernelFn& function);

}  // namespace orch
