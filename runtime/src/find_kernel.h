// Finding the kernel that serves a call.
#pragma once

#include "orch/error.h"
#include "orch/kernel.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

/// Place of the first kernel of an operator of a program, "namespace::base" and
/// its overload; the size of the table if it has none.
size_t find_operator(KernelTable kernels, Span<const char> base,
                     Span<const char> overload);

/// Gives the last argument of a call, if it is the number that the call
/// returns, the kind that the kernels of its operator give; `kernel` is any.
///
/// Programs declare every such number as an Int. That does not say what it is:
/// the exporter leaves it to the kernel. What is declared otherwise stays. A
/// result that the schema calls Scalar is a double if an argument is one, else
/// an int unless all are bools; the dtype counts for a tensor.
void settle_result(const Kernel& kernel, const Args& args);

/// The first kernel that serves a call of an operator whose first kernel is at
/// `first`: kinds, dtypes and kernel key fit. If there is none, the error says
/// how near the last came: OperatorMissing, InvalidProgram (kinds),
/// DtypeNotSelected.
Error find_kernel(KernelTable kernels, size_t first, const Args& args,
                  KernelFn& function);

}  // namespace orch
