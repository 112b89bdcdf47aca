// Distances between rows of numbers.
#pragma once

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"

namespace orch {

/// Rows of one length.
template <typename T>
struct Row {
  const T* items;
  int32_t step;
};

inline float magnitude(float value) { return __builtin_fabsf(value); }
inline double magnitude(double value) { return __builtin_fabs(value); }

/// The sum of term(a - b) over two rows.
template <typename T, typename Term>
Compute<T> sum_terms(Row<T> a, Row<T> b, int32_t count, Term term) {
  using C = Compute<T>;
  C sum = 0;
  for (; count > 0; --count) {
    sum += term(static_cast<C>(*a.items) - static_cast<C>(*b.items));
    a.items += a.step;
    b.items += b.step;
  }
  return sum;
}

/// The norm with power `p` of the difference of two rows: how many numbers
/// differ for 0, the largest difference for infinity. `p` is not below 0. NaN
/// stays, except where `keep_nan` is false, and `p` infinity.
template <typename T>
__attribute__((noinline)) Compute<T> distance(const Row<T>& a, const Row<T>& b,
                                              int32_t count, Compute<T> p,
                                              bool keep_nan) {
  using C = Compute<T>;
  if (p == 2) {
    return math::sqrt(sum_terms(a, b, count, [](C x) { return x * x; }));
  }
  if (p == 1) return sum_terms(a, b, count, [](C x) { return magnitude(x); });
  if (p == 0) {
    // Not 1 for NaN: as PyTorch.
    return sum_terms(a, b, count,
                     [](C x) { return x > 0 || x < 0 ? C(1) : x; });
  }
  if (p - p != 0) {
    C largest = 0;
    for (int32_t i = 0; i < count; ++i) {
      const C x = magnitude(static_cast<C>(a.items[i * a.step]) -
                            static_cast<C>(b.items[i * b.step]));
      if (x > largest || (keep_nan && is_nan(x))) largest = x;
    }
    return largest;
  }
  const C sum =
      sum_terms(a, b, count, [p](C x) { return math::pow(magnitude(x), p); });
  return math::pow(sum, 1 / p);
}

/// distance() with the power 2 of a row to four others, each as far from the
/// one before as the second is from `b`: sums do not wait for each other.
template <typename T>
ORCH_HOT void four_distances(Row<T> a, Row<T> b, int32_t next, int32_t count,
                             Compute<T> (&found)[4]) {
  using C = Compute<T>;
  C sums[4] = {};
  const T* const rows[4] = {b.items, b.items + next, b.items + 2 * next,
                            b.items + 3 * next};
  int32_t at = 0;
  for (; count > 0; --count) {
    const C x = static_cast<C>(*a.items);
    for (int i = 0; i < 4; ++i) {
      const C difference = x - static_cast<C>(rows[i][at]);
      sums[i] += difference * difference;
    }
    a.items += a.step;
    at += b.step;
  }
  for (int i = 0; i < 4; ++i) found[i] = math::sqrt(sums[i]);
}

/// The power of a norm, `float p`. Errors: InvalidArgument (below 0, NaN).
inline Error check_norm(double p) {
  // Not a comparison of doubles: that would be a library function on small
  // cores.
  uint64_t bits;
  memcpy(&bits, &p, sizeof bits);
  const bool negative = bits >> 63 != 0 && bits << 1 != 0;
  ORCH_CHECK(!negative && bits << 1 <= uint64_t{0x7FF} << 53,
             Error::InvalidArgument);
  return Error::Ok;
}

}  // namespace orch
