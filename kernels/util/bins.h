// Bins of equal width between two numbers.
#pragma once

#include "util/check.h"
#include "util/scalar.h"
#include "util/types.h"

namespace orch {

/// `number` in the precision of T, in the type that T is computed in.
template <typename T, typename C>
Compute<T> rounded(C number) {
  return number_of(static_cast<T>(number));
}

/// The least and the largest item. Errors: InvalidArgument (one is infinite or
/// NaN).
template <typename T>
Error find_range(const T* items, int32_t size, T& low, T& high) {
  low = items[0];
  high = items[0];
  for (int32_t i = 0; i < size; ++i) {
    const auto item = number_of(items[i]);
    ORCH_CHECK_DATA(item - item == 0, Error::InvalidArgument);
    if (item < number_of(low)) low = items[i];
    if (item > number_of(high)) high = items[i];
  }
  return Error::Ok;
}

/// Finds bins by division; each operation is rounded to T.
template <typename T>
struct EvenBins {
  Compute<T> low;
  Compute<T> high;
  int32_t count;
  Compute<T> width = rounded<T>(high - low);
  Compute<T> factor = rounded<T>(from_int<Compute<T>>(count));

  /// Neither others nor NaN are in a bin.
  bool has(Compute<T> item) const { return item >= low && item <= high; }
  /// The bin of an item, from 0 to `count`, which is that of `high`. A range
  /// that is too wide or too narrow for T gives infinity or NaN.
  int32_t find(Compute<T> item) const {
    const Compute<T> place =
        rounded<T>(rounded<T>(rounded<T>(item - low) * factor) / width);
    if (place >= factor) return count;
    const int32_t bin = place > 0 ? static_cast<int32_t>(place) : 0;
    return bin < count ? bin : count;
  }
};

}  // namespace orch
