// Numbers among the arguments of an operator.
#pragma once

#include <stdint.h>

#include "orch/scalar_type.h"
#include "orch/value.h"
#include "util/types.h"

namespace orch {

/// `value` as a float, rounded to nearest even as by a cast, which costs a
/// library function on cores that convert only 32 bits.
inline float float_from_int(int64_t value) {
  float scale = 1;
  while (value != static_cast<int32_t>(value)) {
    // A bit that is lost makes the number odd: too low to change the rounding
    // of the other 31 to 24 bits, except that it is no tie any more.
    value = (value >> 1) | (value & 1);
    scale *= 2;
  }
  return static_cast<float>(static_cast<int32_t>(value)) * scale;
}

/// `value` in a type that kernels compute in; integers wrap around.
template <typename C>
C from_int(int64_t value) {
  if constexpr (kIsSame<C, float>) {
    return float_from_int(value);
  } else {
    return static_cast<C>(value);
  }
}

/// A scalar argument in the type that T is computed in. Integers truncate it;
/// Bool has 0 and 1.
template <typename T>
Compute<T> scalar_as(const Scalar& scalar) {
  if constexpr (kIsSame<T, bool>) {
    return scalar.to_double() != 0;
  } else if constexpr (kIsComplex<T>) {
    return scalar_as<decltype(T::real)>(scalar);
  } else if constexpr (kIsFloating<T>) {
    if (!scalar.is_floating()) return from_int<Compute<T>>(scalar.bits());
    const int64_t bits = scalar.bits();
    double value;
    memcpy(&value, &bits, sizeof value);
    return static_cast<Compute<T>>(value);
  } else {
    return static_cast<Compute<T>>(scalar.to_int());
  }
}

/// A scalar argument as T: floats rounded, integers wrapped around, as PyTorch
/// does where a number meets a tensor.
template <typename T>
T scalar_to(const Scalar& scalar) {
  return static_cast<T>(scalar_as<T>(scalar));
}

/// The dtype of an operator on a tensor and a number: the tensor's, unless the
/// number is of a higher category. Source: PyTorch, torch.result_type.
inline ScalarType result_type(ScalarType dtype, const Scalar& number) {
  if (number.is_floating()) {
    return kFloating.has(dtype) ? dtype : ScalarType::Float;
  }
  return dtype == ScalarType::Bool && !number.is_bool() ? ScalarType::Long
                                                        : dtype;
}

/// A set of dtypes and everything that they can become by a number.
constexpr DtypeSet with_number(DtypeSet set) {
  if ((set & (kIntegral | kBool)).bits != 0) {
    if (set.has(ScalarType::Bool)) set = set | dtype_set(ScalarType::Long);
    set = set | dtype_set(ScalarType::Float);
  }
  return set;
}

/// Whether `alpha` may multiply tensors of `dtype` without losing its kind.
inline bool alpha_fits(const Scalar& alpha, ScalarType dtype) {
  if (alpha.is_floating()) return (kFloating | kComplex).has(dtype);
  return !alpha.is_bool() || dtype == ScalarType::Bool;
}

}  // namespace orch
