// Runs a program that nobody trusts, with everything around it watched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "orch/span.h"

namespace orch::test {

/// What came of a program, over all of its methods.
struct HostileCounts {
  uint32_t opened = 0;     // 1 if it is a program at all
  uint32_t loaded = 0;     // methods that were loaded
  uint32_t completed = 0;  // runs that came to their end
};

/// Loads every method of the program, runs each twice and once more after
/// loading it again, with few instructions and little memory.
///
/// Aborts with a message if the runtime breaks a promise: the program's bytes
/// were changed, the state it said it needs is not what it needs, or what was
/// loaded once cannot be loaded again. Accesses outside of the blocks are for
/// AddressSanitizer. The same program always gives the same run.
HostileCounts run_hostile(Span<const uint8_t> bytes);

}  // namespace orch::test
