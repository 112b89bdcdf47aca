// Kernels and the table of those that are linked.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/scalar_type.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

/// A kernel: reads its arguments, writes its outs, keeps no state
/// (orch/random.h has the one exception).
using KernelFn = Error (*)(const Args& args);

/// One entry of the kernel table (flash).
struct Kernel {
  /// "aten::add.out"
  const char* name;
  /// One letter per argument of the op schema (T tensor, L tensor list, O
  /// tensor list whose items may be None, I int, D double, B bool, S scalar, C
  /// string, J int list, E double list, A bool list), small if the kernel
  /// writes it, followed by `?` if it may be None. Returns that are no out
  /// arguments follow after `>`; those that are tensors are small.
  const char* signature;
  /// Kernel key it is specialised for, "v1/6;0,1|6;0,1"; null for a fallback
  /// kernel.
  const char* key;
  KernelFn function;
  /// Dtypes its tensor arguments may have in this build.
  DtypeSet dtypes;
};

/// Kernels of a product, sorted by name, specialised ones before the fallback.
using KernelTable = Span<const Kernel>;

}  // namespace orch
