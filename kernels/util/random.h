// Random numbers of the types that kernels compute in.
#pragma once

#include "orch/math.h"
#include "orch/random.h"
#include "util/types.h"

namespace orch {

/// A number from 0 to below 1, a multiple of 2^-kDigits: all that T can hold
/// without rounding up to 1.
template <typename T>
Compute<T> uniform() {
  if constexpr (kIsSame<T, double>) {
    const uint64_t high = orch_random_next();
    return static_cast<double>((high << 32 | orch_random_next()) >> 11) *
           0x1p-53;
  } else {
    constexpr int kDigits = kIsSame<T, float> ? 24 : kIsSame<T, Half> ? 11 : 8;
    constexpr float kStep = 1 / static_cast<float>(1 << kDigits);
    return static_cast<float>(orch_random_next() >> (32 - kDigits)) * kStep;
  }
}

/// A number of the exponential distribution, of mean 1.
///
/// Without a logarithm. Source: J. von Neumann, "Various Techniques Used in
/// Connection with Random Digits", 1951.
template <typename C>
C exponential() {
  for (C whole = 0;; whole += 1) {
    const C first = uniform<C>();
    C last = first;
    bool odd = true;  // length of the falling run that starts with `first`
    for (C x = uniform<C>(); x < last; x = uniform<C>()) {
      last = x;
      odd = !odd;
    }
    if (odd) return whole + first;
  }
}

/// Two independent numbers of the normal distribution. Source: G. Marsaglia's
/// polar method, its logarithm replaced by an exponential number.
template <typename C>
void normal(C& x, C& y) {
  C size = 0;
  do {
    x = uniform<C>() * 2 - 1;
    y = uniform<C>() * 2 - 1;
    size = x * x + y * y;
  } while (size >= 1 || size == 0);
  const C factor = math::sqrt(2 * exponential<C>() / size);
  x *= factor;
  y *= factor;
}

}  // namespace orch
