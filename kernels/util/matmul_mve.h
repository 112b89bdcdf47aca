// Matrix products of floats with vectors, to the bits of util/matmul.h.
#pragma once

#include "util/dot_mve.h"
#include "util/matrix.h"

#if ORCH_FLOAT_VECTORS

namespace orch {

/// What a product becomes where vectors store it.
struct VectorSums {
  const float* added;    // to each row, or null: only with ORCH_SUMS_ADDED
  const Limits* limits;  // or null: only with ORCH_SUMS_LIMITED
};

/// The products of matmul() of util/matmul.h. Rows of b are read once for two
/// rows of a.
ORCH_ALWAYS_INLINE void multiply_vectors(
    const Matrix<const float>& a, const Matrix<const float>& b,
    const Matrix<float>& out, int32_t rows, int32_t inner, int32_t columns,
    [[maybe_unused]] const VectorSums& sums) {
  const FlushFlags flags;
  const float zero = 0;
  VectorDot dot;
#if ORCH_SUMS_ADDED
  dot.added = sums.added;
#endif
#if ORCH_SUMS_LIMITED
  dot.limits = sums.limits;
#endif
  dot.loops = {{1, 1, inner}, {0, 0, b.row_step}, {0, 0, a.column_step}};
  dot.loops.make_relative();
  dot.x_next = 0;
  dot.w_next = a.row_step;
  dot.start_next = 0;
  dot.y_next = out.row_step;
  for (int32_t j = 0; j < columns; j += kVectorLanes) {
    if (j == 0 || columns - j < kVectorLanes) {
      dot.set_lanes(columns - j, b.column_step, out.column_step);
    }
    dot.x = b.items + j * b.column_step;
    dot.w = a.items;
    dot.start = &zero;
    dot.y = out.items + j * out.column_step;
    dot_rows(dot, rows);
#if ORCH_SUMS_ADDED
    if (dot.added != nullptr) dot.added += kVectorLanes;
#endif
  }
}

/// matmul() of util/matmul.h. Sums wait in out until they are finished.
template <typename Finish>
void matmul_vectors(const Matrix<const float>& a, const Matrix<const float>& b,
                    const Matrix<float>& out, int32_t rows, int32_t inner,
                    int32_t columns, Finish finish) {
  multiply_vectors(a, b, out, rows, inner, columns, {nullptr, nullptr});
  for (int32_t i = 0; i < rows; ++i) {
    float* to = out.items + i * out.row_step;
    for (int32_t j = 0; j < columns; ++j) {
      *to = finish(*to, i, j);
      to += out.column_step;
    }
  }
}

}  // namespace orch

#endif
