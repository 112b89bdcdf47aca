// Means and squared distances from them: variances, normalization.
#pragma once

#include "util/dtype.h"
#include "util/isa.h"
#include "util/strided_loop.h"
#include "util/sum.h"

namespace orch {

template <typename C>
struct Moments {
  C mean;
  /// The sum of (item - mean)^2.
  C squares;
};

/// Of `count` items: those of a loop over tensor 0, which begins again after.
/// load(i) is item `i`. NaN without items.
///
/// The sum of the differences, 0 but for rounding, corrects both: errors of the
/// first sum would show where the mean is far from 0. Source: T. F. Chan et
/// al., "Algorithms for Computing the Sample Variance", 1983.
template <typename C, typename Load>
ORCH_HOT Moments<C> moments(Load load, StridedLoop& loop, int32_t count) {
  const C mean = sum_of_items<C>(load, loop) / static_cast<C>(count);
  Parts<C> rest;
  Parts<C> squares;
  if (count != 0) loop.restart();
  for (; loop.valid(); loop.next()) {
    int32_t at = loop.offset(0);
    const int32_t step = loop.row_stride(0);
    int32_t left = loop.row_size();
    if constexpr (kSumsVectors<Load>) {
      if (step == 1) {
        const int32_t done =
            add_vectors_apart(rest, squares, load.items + at, left, mean);
        at += done;
        left -= done;
      }
    }
    Parts<C> sums = rest;
    Parts<C> sums_of_squares = squares;
    for (; left >= 4; left -= 4) {
      const auto add = [&](C& sum, C& sum_of_squares) {
        const C apart = load(at) - mean;
        sum += apart;
        sum_of_squares += apart * apart;
        at += step;
      };
      add(sums.a, sums_of_squares.a);
      add(sums.b, sums_of_squares.b);
      add(sums.c, sums_of_squares.c);
      add(sums.d, sums_of_squares.d);
    }
    for (; left > 0; --left) {
      const C apart = load(at) - mean;
      sums.add(apart);
      sums_of_squares.add(apart * apart);
      at += step;
    }
    rest = sums;
    squares = sums_of_squares;
  }
  if (count != 0) loop.restart();
  const C error = rest.total() / static_cast<C>(count);
  C sum = squares.total() - rest.total() * error;
  if (sum < 0) sum = 0;
  return {mean + error, sum};
}

/// Moments of items that begin at `items`.
template <typename T>
Moments<Compute<T>> moments(const T* items, StridedLoop& loop, int32_t count) {
  return moments<Compute<T>>(ItemsOf<T>{items}, loop, count);
}

}  // namespace orch
