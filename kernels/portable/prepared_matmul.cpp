#include "orch/kernel.h"
#include "prepared.h"
#include "util/matmul.h"

namespace orch::portable {
namespace {

/// What is added to a product, at row i and column j.
float added_at(const Matrices& shape, const float* added, int32_t i,
               int32_t j) {
  return added[i * shape.added_row + j * shape.added_column];
}

struct Sum {
  const Matrices& shape;
  const float* added;  // or null

  float operator()(float product, int32_t i, int32_t j) const {
    return added == nullptr ? product : added_at(shape, added, i, j) + product;
  }
};

/// As in addmm.
struct ScaledSum {
  const Matrices& shape;
  const float* added;

  float operator()(float sum, int32_t i, int32_t j) const {
    const float product = shape.alpha * sum;
    // With beta 0, NaN and infinity in what is added do not count.
    if (shape.beta == 0) return product;
    return shape.beta * added_at(shape, added, i, j) + product;
  }
};

/// Calls multiply(a, b, out, finish) for each product of a batch.
template <typename Finish, typename Multiply>
ORCH_ALWAYS_INLINE void each_product(const PreparedCall& prepared,
                                     Multiply multiply) {
  const auto& call = static_cast<const MatmulCall&>(prepared);
  const Matrices& shape = *call.shape;
  const Finish finish = {shape, static_cast<const float*>(call.added)};
  const float* a = static_cast<const float*>(call.a);
  const float* b = static_cast<const float*>(call.b);
  float* out = static_cast<float*>(call.out);
  for (int32_t left = shape.batch; left > 0; --left) {
    multiply(Matrix<const float>{a, shape.a_row, shape.a_column},
             Matrix<const float>{b, shape.b_row, shape.b_column},
             Matrix<float>{out, shape.out_row, shape.out_column}, shape.rows,
             shape.inner, shape.columns, finish);
    a += shape.a_matrix;
    b += shape.b_matrix;
    out += shape.out_matrix;
  }
}

template <typename Finish>
void multiply_any(const PreparedCall& call) {
  each_product<Finish>(call, [](auto... what) { matmul<float>(what...); });
}

#if ORCH_FLOAT_VECTORS
#if ORCH_SUMS_ADDED
/// Products, with a row that is added to each, or nothing.
__attribute__((noinline)) void multiply_added(const PreparedCall& prepared,
                                              const Limits* limits) {
  const auto& call = static_cast<const MatmulCall&>(prepared);
  const VectorSums sums = {static_cast<const float*>(call.added), limits};
  each_product<Sum>(
      call, [&](const auto& a, const auto& b, const auto& out, int32_t rows,
                int32_t inner, int32_t columns, const Sum&) {
        multiply_vectors(a, b, out, rows, inner, columns, sums);
      });
}
#endif
#else
__attribute__((noinline)) void multiply_known(const PreparedCall& call,
                                              KnownDots dots) {
  each_product<Sum>(
      call, [dots](auto... what) { matmul_plain<float>(what..., dots); });
}

template <DotFactors kFactors, bool kRest>
void multiply_four(const PreparedCall& call) {
  constexpr KnownDots::Fn kOne = kRest ? dot1<float> : nullptr;
  multiply_known(call, {KnownDots::four_of<kFactors>(), kOne});
}
#endif

}  // namespace

// Calls of addmm, bmm, linear and mm with floats; scaled ones have other
// factors than 1.
void matrix_product_scaled(const PreparedCall& call) {
  multiply_any<ScaledSum>(call);
}

#if ORCH_FLOAT_VECTORS
// Those to which a matrix is added; one row, or nothing; then relu, or limits.
void matrix_product_rows(const PreparedCall& call) { multiply_any<Sum>(call); }

#if ORCH_SUMS_ADDED
void matrix_product(const PreparedCall& call) { multiply_added(call, nullptr); }

#if ORCH_SUMS_LIMITED
void matrix_product_relu(const PreparedCall& call) {
  multiply_added(call, &kReluLimits);
}

void matrix_product_limited(const PreparedCall& prepared) {
  const auto& call = static_cast<const LimitedMatmulCall&>(prepared);
  const MatmulCall plain = {{},         call.a,   call.b,
                            call.added, call.out, call.shape};
  multiply_added(plain, &call.limits);
}
#endif
#endif
#else
void matrix_product(const PreparedCall& call) { multiply_any<Sum>(call); }

// Products with a multiple of four columns, or with `_rest` other numbers, by
// how the factors of a column lie; all with fewer than four columns.
void matrix_product_threes(const PreparedCall& call) {
  multiply_four<DotFactors::kThrees, false>(call);
}

void matrix_product_threes_rest(const PreparedCall& call) {
  multiply_four<DotFactors::kThrees, true>(call);
}

void matrix_product_fours(const PreparedCall& call) {
  multiply_four<DotFactors::kFours, false>(call);
}

void matrix_product_fours_rest(const PreparedCall& call) {
  multiply_four<DotFactors::kFours, true>(call);
}

void matrix_product_apart(const PreparedCall& call) {
  multiply_four<DotFactors::kApart, false>(call);
}

void matrix_product_apart_rest(const PreparedCall& call) {
  multiply_four<DotFactors::kApart, true>(call);
}

void matrix_product_beside(const PreparedCall& call) {
  multiply_four<DotFactors::kBeside, false>(call);
}

void matrix_product_beside_rest(const PreparedCall& call) {
  multiply_four<DotFactors::kBeside, true>(call);
}

void matrix_product_one(const PreparedCall& call) {
  multiply_known(call, {nullptr, dot1<float>});
}
#endif

}  // namespace orch::portable
