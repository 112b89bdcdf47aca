// Matrix products.
#pragma once

#include "orch/tensor.h"
#include "util/check.h"
#include "util/dot.h"
#include "util/matmul_mve.h"
#include "util/matrix.h"

namespace orch {

/// out[i][j] = finish(sum over k of a[i][k] * b[k][j], i, j), summed in order
/// of k, starting from 0. a: [rows, inner], b: [inner, columns], out: [rows,
/// columns].
template <typename T, typename Finish, typename Dots = AnyDots>
void matmul_plain(const Matrix<const T>& a, const Matrix<const T>& b,
                  const Matrix<T>& out, int32_t rows, int32_t inner,
                  int32_t columns, Finish finish, Dots dots = {}) {
  const DotLoops nested = {
      {1, 1, inner}, {0, 0, a.column_step}, {0, 0, b.row_step}};
  const DotLoops loops = nested.relative();
  for (int32_t i = 0; i < rows; ++i) {
    T* to = out.items + i * out.row_step;
    int32_t j = 0;
    for (int32_t block; j < columns; j += block) {
      block = columns - j >= kDotBlock ? kDotBlock : 1;
      if (kFavourSpeed && block == 1) break;
      Compute<T> sums[kDotBlock];
      const Dot<T> dot = {a.items + i * a.row_step, b.items + j * b.column_step,
                          nullptr, 0, b.column_step};
      dots.of(dot, loops, block, sums);
      for (int32_t c = 0; c < block; ++c) {
        to[(j + c) * out.column_step] =
            static_cast<T>(finish(sums[c], i, j + c));
      }
    }
    // Without a call for each, which small matrices would feel.
    for (; kFavourSpeed && j < columns; ++j) {
      const T* x = a.items + i * a.row_step;
      const T* w = b.items + j * b.column_step;
      Compute<T> sum = 0;
      for (int32_t k = inner; k > 0; --k) {
        sum += static_cast<Compute<T>>(*x) * static_cast<Compute<T>>(*w);
        x += a.column_step;
        w += b.row_step;
        keep_apart(x);
      }
      to[j * out.column_step] = static_cast<T>(finish(sum, i, j));
    }
  }
}

/// The same with the instructions of the target.
template <typename T, typename Finish>
void matmul(const Matrix<const T>& a, const Matrix<const T>& b,
            const Matrix<T>& out, int32_t rows, int32_t inner, int32_t columns,
            Finish finish) {
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<T, float>) {
    // To set lanes up is more work than a tiny product.
    if (!kFavourSpeed || inner > 4 || columns > 4) {
      matmul_vectors(a, b, out, rows, inner, columns, finish);
      return;
    }
  }
#endif
  matmul_plain(a, b, out, rows, inner, columns, finish);
}

/// The same for tensors: a [M, K], b [K, N], out [M, N], any dim orders.
template <typename T, typename Finish>
void matmul(const Tensor& a, const Tensor& b, Tensor& out, Finish finish) {
  if (kFavourSpeed && a.contiguous() && b.contiguous() && out.contiguous()) {
    matmul<T>({a.data<T>(), a.size(1), 1}, {b.data<T>(), b.size(1), 1},
              {out.mutable_data<T>(), out.size(1), 1}, out.size(0), b.size(0),
              out.size(1), finish);
    return;
  }
  const Strides a_strides(a);
  const Strides b_strides(b);
  const Strides out_strides(out);
  matmul<T>({a.data<T>(), a_strides[0], a_strides[1]},
            {b.data<T>(), b_strides[0], b_strides[1]},
            {out.mutable_data<T>(), out_strides[0], out_strides[1]},
            out.size(0), b.size(0), out.size(1), finish);
}

/// Checks that a, b and out are matrices of one dtype that can be multiplied,
/// and gives out its sizes; `others` are further inputs. Errors:
/// InvalidArgument, ShapeTooLarge.
template <typename... Tensors>
Error prepare_matmul(const Tensor& a, const Tensor& b, Tensor& out,
                     const Tensors&... others) {
  ORCH_CHECK(a.dim == 2 && b.dim == 2 && a.size(1) == b.size(0),
             Error::InvalidArgument);
  ORCH_CHECK(a.dtype == out.dtype && b.dtype == out.dtype,
             Error::InvalidArgument);
  const int32_t sizes[] = {a.size(0), b.size(1)};
  return resize_output(out, sizes, a, b, others...);
}

}  // namespace orch
