// Complex numbers: how tensors hold them, in C and in C++.
#ifndef ORCH_COMPLEX_H_
#define ORCH_COMPLEX_H_

#include <stdint.h>

/// Items of ComplexHalf (bit patterns), ComplexFloat and ComplexDouble. C99's
/// complex types and C++'s have the same memory.
typedef struct {
  uint16_t real;
  uint16_t imag;
} orch_complex_half;
typedef struct {
  float real;
  float imag;
} orch_complex_float;
typedef struct {
  double real;
  double imag;
} orch_complex_double;

#ifdef __cplusplus

namespace orch {

/// A complex number; arithmetic with those of float and double is in
/// kernels/util/complex.h.
template <typename T>
struct Complex {
  T real;
  T imag;

  Complex() = default;
  constexpr Complex(T re, T im = T()) : real(re), imag(im) {}
  explicit constexpr Complex(int re) : Complex(static_cast<T>(re)) {}
  template <typename U>
  explicit Complex(const Complex<U>& other)
      : real(static_cast<T>(other.real)), imag(static_cast<T>(other.imag)) {}
};

}  // namespace orch

#endif

#endif  // ORCH_COMPLEX_H_
