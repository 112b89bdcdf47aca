// Matrices of a tensor: the last two dimensions, for each index of the others.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/types.h"

namespace orch {

/// A matrix in memory: its first item, and the steps to the next row and
/// column.
template <typename T>
struct Matrix {
  using Item = T;

  T* items;
  int32_t row_step;
  int32_t column_step;

  T& at(int32_t row, int32_t column) const {
    return items[row * row_step + column * column_step];
  }
  Matrix transposed() const { return {items, column_step, row_step}; }
};

/// Matrix `index` of a tensor of at least two dimensions.
template <typename T>
Matrix<T> matrix_of(const Tensor& tensor, int32_t index) {
  const Strides strides(tensor);
  const int rank = tensor.dim;
  int32_t offset = 0;
  for (int d = rank - 2; d-- > 0;) {
    offset += index % tensor.size(d) * strides[d];
    index /= tensor.size(d);
  }
  return {tensor.mutable_data<T>() + offset, strides[rank - 2],
          strides[rank - 1]};
}

/// How many matrices a tensor has.
inline int32_t count_matrices(const Tensor& tensor) {
  int32_t count = 1;
  for (int d = 0; d < tensor.dim - 2; ++d) count *= tensor.size(d);
  return count;
}

/// to = from, of so many rows and columns.
template <typename T>
void copy_matrix(Matrix<T> from, Matrix<T> to, int32_t rows, int32_t columns) {
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t j = 0; j < columns; ++j) to.at(i, j) = from.at(i, j);
  }
}

}  // namespace orch
