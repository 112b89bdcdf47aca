// Matrix products of floats with vectors, to the bits of util/matmul.h.
#pragma once

#include "util/dot_mve.h"
#include "util/matrix.h"

#if ORCH_FLOAT_VECTORS

namespace orch {

/// Lanes of neighbours, `step` items apart; those beyond `count` are the last.
inline void set_lanes(VectorDot& dot, int32_t step, int32_t count) {
  dot.lanes = count < kVectorLanes ? count : kVectorLanes;
  int32_t at = 0;
  for (int32_t lane = 0; lane < kVectorLanes; ++lane) {
    dot.x_lane[lane] = at;
    dot.y_lane[lane] = lane;
    if (lane + 1 < dot.lanes) at += step;
  }
}

/// matmul() of util/matmul.h. Rows of b are read once for two rows of a.
template <typename Finish>
void matmul_vectors(const Matrix<const float>& a, const Matrix<const float>& b,
                    const Matrix<float>& out, int32_t rows, int32_t inner,
                    int32_t columns, Finish finish) {
  const FlushFlags flags;
  float sums[kVectorRows][kVectorLanes];
  VectorDot dot;
  dot.loops = {{1, 1, inner}, {0, 0, b.row_step}, {0, 0, a.column_step}};
  dot.loops.make_relative();
  for (int32_t row = 0; row < kVectorRows; ++row) {
    dot.start[row] = 0;
    dot.y[row] = sums[row];
  }
  for (int32_t j = 0; j < columns; j += kVectorLanes) {
    set_lanes(dot, b.column_step, columns - j);
    dot.x = b.items + j * b.column_step;
    for (int32_t i = 0, block; i < rows; i += block) {
      block = rows - i < kVectorRows ? 1 : kVectorRows;
      dot.w[0] = a.items + i * a.row_step;
      dot.w[1] = dot.w[0] + a.row_step;
      dot_tile(dot, block);
      for (int32_t row = 0; row < block; ++row) {
        float* to = out.items + (i + row) * out.row_step + j * out.column_step;
        for (int32_t lane = 0; lane < dot.lanes; ++lane) {
          *to = finish(sums[row][lane], i + row, j + lane);
          to += out.column_step;
        }
      }
    }
  }
}

}  // namespace orch

#endif
