// Calls that the build prepared.
#pragma once

namespace orch {

/// A call of a kernel that reads, checks and finds out nothing: the build made
/// a struct of what it needs, in flash. Kernels derive theirs from this one.
/// Trusted.
struct PreparedCall {
  void (*run)(const PreparedCall& call);
};

}  // namespace orch
