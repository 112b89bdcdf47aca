// Kernels for operators that nothing implements, so that programs can be loaded
// and their control flow run without them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "orch/kernel.h"
#include "orch/span.h"

namespace orch::test {

/// The kernels of `known`, and a stand-in for every other operator that a
/// program lists. A stand-in takes any call. It reads all of its arguments,
/// writes the tensors and numbers that may be written, and changes the sizes of
/// dynamic tensors: whatever a kernel can do. The same program always gives the
/// same run.
class StandIns {
 public:
  StandIns(Span<const uint8_t> program, KernelTable known);

  KernelTable table() const { return {kernels_.data(), kernels_.size()}; }

 private:
  std::deque<std::string> names_;
  std::vector<Kernel> kernels_;
};

}  // namespace orch::test
