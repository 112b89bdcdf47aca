// Floats to integers, the same on every target.
#pragma once

#include <stdint.h>
#include <string.h>

#include "util/dtype.h"

namespace orch {

/// `value` without its fraction in 64 bits: the nearest limit where it is out
/// of range, 0 for NaN. From the bits, as the conversions of small cores are
/// large library functions.
template <typename F>
int64_t truncate_wide(F value) {
  using Bits = typename Choose<sizeof(F) == 8, uint64_t, uint32_t>::type;
  constexpr int kFraction = sizeof(F) == 8 ? 52 : 23;
  constexpr int kBias = sizeof(F) == 8 ? 1023 : 127;
  Bits bits;
  memcpy(&bits, &value, sizeof bits);
  const bool minus = bits >> (8 * sizeof bits - 1) != 0;
  bits &= static_cast<Bits>(-1) >> 1;
  const int exponent = static_cast<int>(bits >> kFraction) - kBias;
  if (exponent < 0 || value != value) return 0;
  if (exponent > 62) return minus ? INT64_MIN : INT64_MAX;
  const Bits one = static_cast<Bits>(1) << kFraction;
  uint64_t whole = (bits & (one - 1)) | one;
  if (exponent < kFraction) {
    whole >>= kFraction - exponent;
  } else {
    whole <<= exponent - kFraction;
  }
  return minus ? -static_cast<int64_t>(whole) : static_cast<int64_t>(whole);
}

/// The same in 32 bits.
template <typename F>
int32_t truncate_narrow(F value) {
  if (value >= F(0x1p31F)) return INT32_MAX;
  if (value < F(-0x1p31F)) return INT32_MIN;
  return value != value ? 0 : static_cast<int32_t>(value);
}

/// `value` as the items of another dtype.
///
/// As `convert`; floats become integers by dropping the fraction. Those out of
/// range become the nearest limit of 32 bits, or 64 for Long, and what is
/// narrower is wrapped around from there; NaN becomes 0. Where PyTorch's
/// result does not depend on the machine, it is the same.
template <typename To, typename From>
To cast_item(From value) {
  if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    if constexpr (kIsSame<To, bool>) {
      return cast_item<bool>(value.real) || cast_item<bool>(value.imag);
    } else {
      return cast_item<To>(value.real);
    }
  } else if constexpr (kIsComplex<From>) {
    return To(convert<decltype(To::real)>(value.real),
              convert<decltype(To::real)>(value.imag));
  } else if constexpr (kIsComplex<To>) {
    return convert<To>(value);
  } else if constexpr (kIsHalf<From>) {
    return cast_item<To>(static_cast<float>(value));
  } else if constexpr (kIsFloating<From> && !kIsFloating<To> &&
                       !kIsSame<To, bool>) {
    if constexpr (sizeof(To) == 8) {
      return static_cast<To>(truncate_wide(value));
    } else {
      return static_cast<To>(truncate_narrow(value));
    }
  } else {
    return convert<To>(value);
  }
}

/// load_as of util/dtype.h, also of floats as integers.
template <typename T, uint32_t kBits>
T load_cast(ScalarType dtype, const void* items, int32_t index) {
  switch (dtype) {
#define ORCH_CASE(name, U)                                      \
  case ScalarType::name:                                        \
    if constexpr (DtypeSet{kBits}.has(ScalarType::name)) {      \
      return cast_item<T>(static_cast<const U*>(items)[index]); \
    }                                                           \
    break;
    ORCH_FOR_EACH_DTYPE(ORCH_CASE)
#undef ORCH_CASE
  }
  return convert<T>(0);
}

}  // namespace orch
