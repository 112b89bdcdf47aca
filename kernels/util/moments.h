// Means and squared distances from them: variances, normalization.
#pragma once

#include "util/dtype.h"
#include "util/isa.h"
#include "util/strided_loop.h"

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
  C sum = 0;
  for (; loop.valid(); loop.next()) {
    int32_t at = loop.offset(0);
    const int32_t step = loop.row_stride(0);
    for (int32_t left = loop.row_size(); left > 0; --left) {
      sum += load(at);
      at += step;
    }
  }
  const C mean = sum / static_cast<C>(count);
  C squares = 0;
  C rest = 0;
  if (count != 0) loop.restart();
  for (; loop.valid(); loop.next()) {
    int32_t at = loop.offset(0);
    const int32_t step = loop.row_stride(0);
    for (int32_t left = loop.row_size(); left > 0; --left) {
      const C apart = load(at) - mean;
      rest += apart;
      squares += apart * apart;
      at += step;
    }
  }
  if (count != 0) loop.restart();
  const C error = rest / static_cast<C>(count);
  squares -= rest * error;
  if (squares < 0) squares = 0;
  return {mean + error, squares};
}

/// Items in the type that they are computed in.
template <typename T>
struct ItemsOf {
  const T* items;
  Compute<T> operator()(int32_t at) const {
    return static_cast<Compute<T>>(items[at]);
  }
};

/// Moments of items that begin at `items`.
template <typename T>
Moments<Compute<T>> moments(const T* items, StridedLoop& loop, int32_t count) {
  return moments<Compute<T>>(ItemsOf<T>{items}, loop, count);
}

}  // namespace orch
