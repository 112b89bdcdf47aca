// Matrix products of floats with vectors, to the bits of util/matmul.h.
#pragma once

#include "util/dot_mve.h"
#include "util/limits.h"
#include "util/matrix.h"

#if ORCH_FLOAT_VECTORS

namespace orch {

/// The products of matmul() of util/matmul.h. Rows of b are read once for two
/// rows of a. Calls begin(j, lanes) before columns from j on, and gives
/// `finish` their sums.
template <typename Begin>
ORCH_ALWAYS_INLINE void multiply_vectors(const Matrix<const float>& a,
                                         const Matrix<const float>& b,
                                         const Matrix<float>& out, int32_t rows,
                                         int32_t inner, int32_t columns,
                                         const VectorFinish* finish,
                                         Begin begin) {
  const FlushFlags flags;
  const float zero = 0;
  VectorDot dot;
  dot.finish = finish;
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
    begin(j, dot.lanes);
    dot_rows(dot, rows);
  }
}

/// matmul() of util/matmul.h. Sums wait in out until they are finished.
template <typename Finish>
void matmul_vectors(const Matrix<const float>& a, const Matrix<const float>& b,
                    const Matrix<float>& out, int32_t rows, int32_t inner,
                    int32_t columns, Finish finish) {
  multiply_vectors(a, b, out, rows, inner, columns, nullptr,
                   [](int32_t, int32_t) {});
  for (int32_t i = 0; i < rows; ++i) {
    float* to = out.items + i * out.row_step;
    for (int32_t j = 0; j < columns; ++j) {
      *to = finish(*to, i, j);
      to += out.column_step;
    }
  }
}

/// What is added to the sums of eight columns, and their limits.
struct VectorAdded : VectorFinish {
  void set_added(const float* items) { p0 = reinterpret_cast<int32_t>(items); }
  void set_limits(const Limits& limits) {
    p1 = reinterpret_cast<int32_t>(&limits);
  }
  static float item(const VectorFinish& finish, int32_t lane, float sum) {
    return reinterpret_cast<const float*>(finish.p0)[lane] + sum;
  }
  static float limited_item(const VectorFinish& finish, int32_t lane,
                            float sum) {
    const float whole = item(finish, lane, sum);
    store_within(*reinterpret_cast<const Limits*>(finish.p1), whole, &sum);
    return sum;
  }
};

// clang-format off
#define ORCH_ADD_LANES \
  "vldrw.32 q4, [r2]\n" \
  "vldrw.32 q5, [r2, #16]\n" \
  "vadd.f32 q0, q0, q4\n" \
  "vadd.f32 q1, q1, q5\n" \
  "vadd.f32 q2, q2, q4\n" \
  "vadd.f32 q3, q3, q5\n"
#define ORCH_NOTHING(x, y)
// clang-format on
/// Adds what is at r2 to both rows; then relu, or limits at r3.
ORCH_LANES_AFTER(add_lanes, ORCH_ADD_LANES, ORCH_NOTHING);
ORCH_LANES_AFTER(add_relu_lanes, ORCH_ADD_LANES "vmov.i32 q4, #0\n", ORCH_RELU);
ORCH_LANES_AFTER(add_clamp_lanes,
                 ORCH_ADD_LANES "ldrd r2, r3, [r3]\nvdup.32 q4, r2\n",
                 ORCH_CLAMP);
#undef ORCH_ADD_LANES
#undef ORCH_NOTHING

/// The same where `sum` adds one row, if any, which `finish` does, and the
/// rest. Products are never -0, as they are summed from 0: to add 0 changes
/// none.
template <typename Sum>
void matmul_added(const Matrix<const float>& a, const Matrix<const float>& b,
                  const Matrix<float>& out, int32_t rows, int32_t inner,
                  int32_t columns, Sum sum, VectorAdded finish) {
  float items[kVectorLanes];
  finish.set_added(items);
  multiply_vectors(a, b, out, rows, inner, columns, &finish,
                   [&](int32_t j, int32_t lanes) {
                     const float* added = items;
                     if (sum.is_line() && lanes == kVectorLanes) {
                       added = sum.added + j;
                     } else {
                       for (int32_t lane = 0; lane < kVectorLanes; ++lane) {
                         items[lane] = lane < lanes ? sum(0, 0, j + lane) : 0;
                       }
                     }
                     finish.set_added(added);
                   });
}

}  // namespace orch

#endif
