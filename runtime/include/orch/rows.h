// Runs of methods whose input comes by rows.
#pragma once

#include "orch/model.h"

namespace orch {

/// Begins a run: what was left of another one is gone. Errors: those of
/// `prepare`.
Error begin_rows(const ModelMethod& method);

/// Goes on with a run, as `room` bytes of rows have been written at `to`.
void rows_came(const ModelMethod& method);

/// Copies rows in, and computes what they allow. With `flips` they are uint8
/// numbers, larger by 128 than those of the method. Errors: InvalidArgument, if
/// these are more rows than the input still lacks; nothing happens then.
Error push_rows(const ModelMethod& method, const void* rows, uint32_t count,
                uint32_t row_bytes, bool flips);

/// Whether a run has ended, and its outputs are there. Errors: InvalidArgument,
/// if rows are missing.
Error finish_rows(const ModelMethod& method);

}  // namespace orch
