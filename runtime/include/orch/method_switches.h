// How methods run: what their tables hold, and what the runtime has for it. The
// build gives all sources of runtime and application the same.
#pragma once

/// 0 if all instructions of all methods are prepared calls (orch/prepared.h).
#ifndef ORCH_KERNEL_CALLS
#define ORCH_KERNEL_CALLS 1
#endif

/// 1 if methods run by rows (orch/steps.h).
#ifndef ORCH_BY_ROWS
#define ORCH_BY_ROWS 0
#endif

/// 1 if rows of their inputs come from the caller (orch/rows.h).
#ifndef ORCH_GIVEN_ROWS
#define ORCH_GIVEN_ROWS 0
#endif
