// Matrix products of floats with vectors, to the bits of util/matmul.h.
#pragma once

#include "util/dot_mve.h"
#include "util/matrix.h"

#if ORCH_FLOAT_VECTORS

namespace orch {

/// matmul() of util/matmul.h. Rows of b are read once for two rows of a.
template <typename Finish>
void matmul_vectors(const Matrix<const float>& a, const Matrix<const float>& b,
                    const Matrix<float>& out, int32_t rows, int32_t inner,
                    int32_t columns, Finish finish) {
  const FlushFlags flags;
  const float zero = 0;
  float sums[kVectorRows][kVectorLanes];
  VectorDot dot;
  dot.loops = {{1, 1, inner}, {0, 0, b.row_step}, {0, 0, a.column_step}};
  dot.loops.make_relative();
  dot.x_next = 0;
  dot.w_next = a.row_step;
  dot.start_next = 0;
  dot.y_next = kVectorLanes;
  for (int32_t j = 0; j < columns; j += kVectorLanes) {
    dot.set_lanes(columns - j, b.column_step, 1, 0);
    dot.x = b.items + j * b.column_step;
    for (int32_t i = 0, block; i < rows; i += block) {
      block = rows - i < kVectorRows ? 1 : kVectorRows;
      dot.w = a.items + i * a.row_step;
      dot.start = &zero;
      dot.y = sums[0];
      dot_rows(dot, block);
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
