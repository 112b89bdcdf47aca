// What the build leaves out of products that have no use for it. Without a
// build everything is there.
#pragma once

/// 0 if no input or output of the product lies in memory of the caller.
#ifndef ORCH_CALLER_IO
#define ORCH_CALLER_IO 1
#endif

/// 0 if no program of the product has its constants inside the flatbuffer, the
/// layout of before ExecuTorch 0.7.
#ifndef ORCH_INLINE_CONSTANTS
#define ORCH_INLINE_CONSTANTS 1
#endif

/// 0 if no delegate of the product finds data by name.
#ifndef ORCH_NAMED_DATA
#define ORCH_NAMED_DATA 1
#endif

/// 0 if all methods are prelinked and none moves a value or jumps.
#ifndef ORCH_CONTROL_FLOW
#define ORCH_CONTROL_FLOW 1
#endif

/// 1 if some calls of the product are prepared, and some are not.
#ifndef ORCH_PREPARED_CALLS
#define ORCH_PREPARED_CALLS 0
#endif

/// 0 if all methods are prelinked and nothing is written before they run.
#ifndef ORCH_INITIAL_BYTES
#define ORCH_INITIAL_BYTES 1
#endif

/// 0 if all methods are prelinked and no such bytes are zeros of no table.
#ifndef ORCH_INITIAL_ZEROS
#define ORCH_INITIAL_ZEROS 1
#endif

/// 1 if kernels of the product compute with floats, and the core has modes that
/// change what these give.
#ifndef ORCH_CHECKS_FLOATS
#define ORCH_CHECKS_FLOATS 0
#endif

/// 1 if arenas of methods overlap: no program may keep anything in those.
#ifndef ORCH_COMMON_ARENAS
#define ORCH_COMMON_ARENAS 0
#endif

namespace orch {

constexpr bool kCallerIo = ORCH_CALLER_IO != 0;
constexpr bool kInlineConstants = ORCH_INLINE_CONSTANTS != 0;
constexpr bool kNamedData = ORCH_NAMED_DATA != 0;
constexpr bool kControlFlow = ORCH_CONTROL_FLOW != 0;
constexpr bool kPreparedCalls = ORCH_PREPARED_CALLS != 0;
constexpr bool kInitialBytes = ORCH_INITIAL_BYTES != 0;
constexpr bool kInitialZeros = ORCH_INITIAL_ZEROS != 0;

}  // namespace orch
