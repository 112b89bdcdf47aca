// Element types: what they are, what they compute in, how they convert.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/complex.h"
#include "orch/half.h"

namespace orch {

/// A type as a value: what dtype dispatch hands to a generic lambda.
template <typename T>
struct Type {
  using type = T;
};

template <typename A, typename B>
inline constexpr bool kIsSame = false;
template <typename A>
inline constexpr bool kIsSame<A, A> = true;

template <typename T>
inline constexpr bool kIsHalf = kIsSame<T, Half> || kIsSame<T, BFloat16>;
template <typename T>
inline constexpr bool kIsFloating =
    kIsHalf<T> || kIsSame<T, float> || kIsSame<T, double>;

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<Complex<T>> = true;

template <bool kCondition, typename A, typename B>
struct Choose {
  using type = A;
};
template <typename A, typename B>
struct Choose<false, A, B> {
  using type = B;
};

/// Unsigned integers of so many bytes.
template <size_t kBytes>
using UnsignedOf = typename Choose<
    kBytes == 8, uint64_t,
    typename Choose<
        kBytes == 4, uint32_t,
        typename Choose<kBytes == 2, uint16_t, uint8_t>::type>::type>::type;

template <typename T>
struct ComputeOf {
  using type = typename Choose<
      kIsFloating<T>, typename Choose<kIsSame<T, double>, double, float>::type,
      typename Choose<sizeof(T) == 8, uint64_t, uint32_t>::type>::type;
};
template <typename T>
struct ComputeOf<Complex<T>> {
  using type = Complex<typename ComputeOf<T>::type>;
};

/// The type that sums and products of `T` are computed in. Integers wrap
/// around, as PyTorch's do: unsigned arithmetic keeps that defined.
template <typename T>
using Compute = typename ComputeOf<T>::type;

/// Items in the type that they are computed in.
template <typename T>
struct ItemsOf {
  const T* items;
  Compute<T> operator()(int32_t at) const {
    return static_cast<Compute<T>>(items[at]);
  }
};

/// `value` in a type that compares and rounds as numbers do: halves as float.
template <typename T>
auto number_of(T value) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

/// The value that no other is below: minus infinity, or the smallest integer.
template <typename T>
constexpr T lowest() {
  if constexpr (kIsFloating<T>) {
    return -static_cast<T>(__builtin_inff());
  } else if constexpr (static_cast<T>(-1) > T(0)) {
    return 0;
  } else {
    return static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1));
  }
}

/// The value that no other is above: infinity, or the largest integer.
template <typename T>
constexpr T highest() {
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(__builtin_inff());
  } else if constexpr (kIsSame<T, bool>) {
    return true;
  } else {
    return static_cast<T>(~lowest<T>());
  }
}

/// Whether `value` is less than 0; false for NaN and for -0.
template <typename T>
bool is_negative(T value) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(value) < 0;
  } else {
    return value < T(0);
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (kIsFloating<T>) {
    return value != value;
  } else {
    return false;
  }
}

/// `value` as another element type, rounded or wrapped as PyTorch does.
///
/// Conversions of floats to integers do not occur in type promotion; they are
/// left out because out-of-range values need an operator's own rule.
template <typename To, typename From>
To convert(From value) {
  static_assert(kIsFloating<To> || kIsComplex<To> || !kIsFloating<From> ||
                    kIsSame<To, bool>,
                "floats to integers: decide what happens out of range");
  if constexpr (kIsComplex<To> && !kIsComplex<From>) {
    return To(convert<decltype(To::real)>(value));
  } else if constexpr (kIsComplex<To>) {
    using Part = decltype(To::real);
    return To(convert<Part>(value.real), convert<Part>(value.imag));
  } else if constexpr (kIsHalf<From> && !kIsSame<From, To>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (kIsHalf<To> && !kIsSame<From, To>) {
    return To(static_cast<float>(value));
  } else if constexpr (kIsSame<To, bool>) {
    return value != From{};
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace orch
