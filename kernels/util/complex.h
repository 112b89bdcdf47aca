// Arithmetic of complex numbers. The order of the operations is fixed, so that
// results are the same on every target.
#pragma once

#include "orch/complex.h"
#include "orch/half.h"
#include "orch/math.h"
#include "util/types.h"

namespace orch {

template <typename T>
Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <typename T>
Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <typename T>
Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
template <typename T>
Complex<T>& operator+=(Complex<T>& a, Complex<T> b) {
  return a = a + b;
}

/// a / b. The larger part of `b` becomes 1 first, so that its square neither
/// overflows nor vanishes. Source: R. L. Smith, Algorithm 116, CACM 1962.
template <typename T>
Complex<T> operator/(Complex<T> a, Complex<T> b) {
  const T re = b.real < 0 ? -b.real : b.real;
  const T im = b.imag < 0 ? -b.imag : b.imag;
  if (re >= im) {
    if (re == 0 && im == 0) return {a.real / re, a.imag / im};
    const T ratio = b.imag / b.real;
    const T scale = T(1) / (b.real + b.imag * ratio);
    return {(a.real + a.imag * ratio) * scale,
            (a.imag - a.real * ratio) * scale};
  }
  const T ratio = b.real / b.imag;
  const T scale = T(1) / (b.real * ratio + b.imag);
  return {(a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale};
}

/// The distance of `value` from 0, at most 1.3 ulp off; infinity if a part is
/// infinite.
template <typename T>
T magnitude(Complex<T> value) {
  T large = value.real < 0 ? -value.real : value.real;
  T small = value.imag < 0 ? -value.imag : value.imag;
  const T infinity = static_cast<T>(__builtin_inff());
  if (large == infinity || small == infinity) return infinity;
  if (large < small) {
    const T other = large;
    large = small;
    small = other;
  }
  // By powers of two, so that squares neither overflow nor vanish.
  constexpr bool kWide = sizeof(T) == sizeof(double);
  constexpr T kHuge = static_cast<T>(kWide ? 0x1p500 : 0x1p60);
  constexpr T kTiny = static_cast<T>(kWide ? 0x1p-450 : 0x1p-45);
  constexpr T kShrink = static_cast<T>(kWide ? 0x1p-600 : 0x1p-80);
  constexpr T kGrow = static_cast<T>(kWide ? 0x1p700 : 0x1p100);
  T back = 1;
  if (large > kHuge) {
    large *= kShrink;
    small *= kShrink;
    back = 1 / kShrink;
  } else if (large < kTiny) {
    large *= kGrow;
    small *= kGrow;
    back = 1 / kGrow;
  }
  return math::sqrt(large * large + small * small) * back;
}

}  // namespace orch
