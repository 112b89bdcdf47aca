// Runs in parts, for schedulers that give a task some time at once.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/model.h"

namespace orch {

/// How far a run in parts is; zeros before its first part.
struct PartialRun {
  uint32_t next = 0;      // instruction; byte of the table of steps, if any
  uint32_t executed = 0;  // instructions, for the limit of a run
};

/// Executes at most `count` more instructions of a method that is ready, at
/// least one.
/// Errors: NotDone if some are left, and those of `run`; after any other status
/// the next part begins a new run.
Error run_part(const ModelMethod& method, PartialRun& run, uint32_t count);

}  // namespace orch
