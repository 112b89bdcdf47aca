// The hooks of the product. In its library they have the names that its header
// declares, so that programs trace several products at once.

#pragma once

#include "orch/trace.h"

extern "C" {

/// The counter, in any unit that suits the product.
orch_ticks orch_trace_ticks();

/// Called after every instruction, one that failed included.
void orch_trace_record(uint32_t method, uint32_t instruction, orch_ticks begin,
                       orch_ticks end);
}
