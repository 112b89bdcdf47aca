// Factors of matrices: a lower triangle with ones, and an upper triangle.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/flattened.h"
#include "util/isa.h"
#include "util/matrices.h"

namespace orch {

/// Replaces a matrix by its factors, by Gauss with rows
/// swapped so that each pivot is the largest in size, the first of several.
/// `pivots` gets the row that was swapped with each one, counted from 1.
/// Returns -1 if their number is odd, else 1.
template <typename T>
ORCH_HOT int factor(Matrix<T> a, int32_t rows, int32_t columns, int32_t* pivots,
                    int32_t pivot_step) {
  int sign = 1;
  for (int32_t k = 0; k < rows && k < columns; ++k) {
    int32_t row = k;
    T largest = 0;
    for (int32_t i = k; i < rows; ++i) {
      const T size = a.at(i, k) < 0 ? -a.at(i, k) : a.at(i, k);
      if (size > largest) {
        largest = size;
        row = i;
      }
    }
    pivots[k * pivot_step] = row + 1;
    if (row != k) {
      sign = -sign;
      for (int32_t j = 0; j < columns; ++j) {
        const T item = a.at(k, j);
        a.at(k, j) = a.at(row, j);
        a.at(row, j) = item;
      }
    }
    const T pivot = a.at(k, k);
    if (pivot == 0) continue;
    for (int32_t i = k + 1; i < rows; ++i) {
      const T times = a.at(i, k) / pivot;
      a.at(i, k) = times;
      for (int32_t j = k + 1; j < columns; ++j)
        a.at(i, j) -= times * a.at(k, j);
    }
  }
  return sign;
}

/// Factors of all matrices of `a` into `lu`, and their pivots: those of the
/// transposed square matrices where that is wanted. Calls fn(index, factors,
/// diagonal, sign) for each; `diagonal` is the length of that. kBits: dtypes of
/// `a`. Trusts the sizes. Errors: DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error factor_all(const Tensor& a, bool transposed, Tensor& lu, Tensor& pivots,
                 Fn fn) {
  const int32_t rows = a.size(a.dim - 2);
  const int32_t columns = a.size(a.dim - 1);
  const int32_t diagonal = rows < columns ? rows : columns;
  const int32_t count = count_matrices(a);
  return switch_dtype<kBits>(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Strides to(pivots);
    for (int32_t index = 0; index < count; ++index) {
      const Matrix<T> from = matrix_of<T>(a, index);
      const Matrix<T> factors = matrix_of<T>(lu, index);
      copy_matrix(transposed ? from.transposed() : from, factors, rows,
                  columns);
      // Pivots of a matrix are a line along the last dimension.
      const int32_t first =
          diagonal == 0 ? 0 : item_offset(pivots, to, index * diagonal);
      const int sign =
          factor(factors, rows, columns, pivots.mutable_data<int32_t>() + first,
                 to[pivots.dim - 1]);
      fn(index, factors, diagonal, sign);
    }
    return Error::Ok;
  });
}

/// Checks `a`, and gives its factors, pivots and the outputs with one item for
/// each matrix, `numbers`, their sizes. Errors: InvalidArgument, ShapeTooLarge.
template <typename... Numbers>
Error prepare_factors(const Tensor& a, Tensor& lu, Tensor& pivots,
                      Numbers&... numbers) {
  ORCH_CHECK(
      a.dim >= 2 && lu.dtype == a.dtype && pivots.dtype == ScalarType::Int,
      Error::InvalidArgument);
  const size_t rank = a.dim;
  int32_t sizes[kMaxDim];
  for (size_t i = 0; i < rank - 1; ++i) sizes[i] = a.dims[i];
  if (a.dims[rank - 1] < sizes[rank - 2]) sizes[rank - 2] = a.dims[rank - 1];
  ORCH_TRY(resize_output(lu, a.sizes(), a));
  ORCH_TRY(resize_output(pivots, {sizes, rank - 1}, a, lu));
  Error error = Error::Ok;
  const auto resize_number = [&](Tensor& number) {
    return error == Error::Ok
               ? resize_output(number, {sizes, rank - 2}, a, lu, pivots)
               : error;
  };
  ((error = resize_number(numbers)), ...);
  return error;
}

}  // namespace orch
