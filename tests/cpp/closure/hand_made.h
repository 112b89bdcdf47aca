// Calls of dtypes, and mixtures of dtypes, of which nothing is recorded.
#pragma once

#include <deque>

#include "support/reference.h"

namespace orch::test {

std::deque<ReferenceCall> hand_made_calls();

}  // namespace orch::test
