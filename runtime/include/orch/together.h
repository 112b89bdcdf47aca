// Methods of a program that share state.
#pragma once

#include "orch/error.h"
#include "orch/model.h"
#include "orch/span.h"

namespace orch {

/// Makes a method ready, and with it all that share its state: each brings the
/// initial state along, so that none may be loaded once another one has run.
///
/// If the method cannot be loaded, none of them is: the next call of one of the
/// others begins with the initial state. What keeps another one from loading is
/// for the calls of that one to tell.
Error start_together(const ModelMethod& method,
                     Span<const ModelMethod* const> all,
                     Error (*start)(const ModelMethod& method));

}  // namespace orch
