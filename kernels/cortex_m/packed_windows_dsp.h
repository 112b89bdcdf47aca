// Inner loops of depthwise windows of 3 x 3: functions in assembly.
#pragma once

#include <stdint.h>

#include "packed_dsp.h"
#include "tile_dsp.h"

namespace orch::cortex_m {

/// Where a row of the image begins, or a word of padding. Known to the
/// assembly.
struct Row {
  const int8_t* from;
  int32_t step;
};

// Four channels of two rows as pairs, up to `end`.
extern "C" void orch_pair_rows(const Row* rows, Pair* to, const Pair* end);

/// What loops over four channels take besides pointers. Known to the assembly.
struct RowLoop {
  int32_t column_bytes;  // of the pairs that windows begin with
  int32_t line;          // from the first output row to the second one, or 0
  int32_t channels;
  const Pair* x_end;  // where `x` of a channel behind the last one would be
};

// Up to four channels of two output rows. `x`: columns; `w`: what `expand`
// makes of them. The first pair of rows of a column are the two upper ones; for
// the other function the second one is. The lower output is stored first:
// without a line the upper one stays.
using RowsFn = void(const Pair* x, const int32_t* w, int8_t* y,
                    const RowLoop* loop);
extern "C" RowsFn orch_packed_two_rows;
extern "C" RowsFn orch_packed_two_rows_swapped;
/// The same for windows that move by two: one output row.
extern "C" RowsFn orch_packed_row;
extern "C" RowsFn orch_packed_row_swapped;

/// What loops over a band take, which change it. Known to the assembly.
template <int32_t kRows>
struct RowsCall {
  const int8_t* rows[kRows];  // of the first column, or a word of padding
  int32_t step[kRows];        // from a column to the next one, or 0
  int32_t next[kRows];        // from four channels to the next ones, or 0
  Pair* image;                // columns of the image
  Pair* image_end;
  const PackedChannel* w;
  int8_t* y;
  const Pair* x;   // columns of the first window
  int32_t count;   // of outputs in a row, times 256
  int32_t offset;  // added to outputs, as PackedChannel has what is added
  int32_t channels;
  int32_t below;  // from an output to the one in the next row; 0: there is none
  const Pair* x_end;
  const PackedChannel* w_end;
  int32_t line;  // from a row to the next one; 0: some are padding
};

// A row of outputs, four channels after the other. The inputs of four channels
// are paired first; weights of a channel stay in registers. Sums are shifted
// where those of the functions above have shifted weights: most rows have fewer
// outputs than a channel has weights. Two columns of outputs share columns of
// inputs: two if windows move by one, one if they move by two.
extern "C" void orch_packed_one_row(RowsCall<3>* call);
extern "C" void orch_packed_one_row_by_two(RowsCall<3>* call);

// The same for two rows: inputs are paired with those below them, and so are
// weights, each of the first two with the one below. The lower output is stored
// first: if there is no second row, the upper one stays.
extern "C" void orch_packed_both_rows(RowsCall<4>* call);

}  // namespace orch::cortex_m
