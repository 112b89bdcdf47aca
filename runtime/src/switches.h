// What the build leaves out of products that have no use for it. Without a
// build everything is there.
#pragma once

/// 0 if no input or output of the product lies in memory of the caller.
#ifndef ORCH_CALLER_IO
#define ORCH_CALLER_IO 1
#endif

namespace orch {

constexpr bool kCallerIo = ORCH_CALLER_IO != 0;

}  // namespace orch
