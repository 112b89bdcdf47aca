// Calls that the build prepared.
#pragma once

#include <stdint.h>

namespace orch {

/// A call of a kernel that reads, checks and finds out nothing: the build made
/// a struct of what it needs, in flash. Kernels derive theirs from this one.
/// Trusted.
struct PreparedCall {
  void (*run)(const PreparedCall& call);
};

/// Bytes that move within an arena: rows of an image that are still needed.
struct MoveCall : PreparedCall {
  const void* input;
  void* out;  // may overlap the input
  int32_t size_bytes;
};

/// Runs a MoveCall.
void move_bytes(const PreparedCall& call);

}  // namespace orch
