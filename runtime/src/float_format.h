// Layout of float and double, for code written once for both.
#pragma once

#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "floats would differ between targets: compile without -ffast-math"
#endif
static_assert(__FLT_EVAL_METHOD__ == 0,
              "float arithmetic must round to float after every operation");

namespace orch::math {

/// Source: IEEE 754, binary32 and binary64.
template <typename F>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kFraction = 23;  // stored bits of the significand
  static constexpr int kBias = 127;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kFraction = 52;
  static constexpr int kBias = 1023;
};

template <typename F>
typename Format<F>::Bits to_bits(F value) {
  typename Format<F>::Bits bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <typename F>
F from_bits(typename Format<F>::Bits bits) {
  F value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// 2 to the power of `exponent`, which is in the range of normal numbers.
template <typename F>
F power_of_two(int exponent) {
  using Bits = typename Format<F>::Bits;
  return from_bits<F>(static_cast<Bits>(exponent + Format<F>::kBias)
                      << Format<F>::kFraction);
}

/// Exponent and fraction bits all one: infinity is this plus one fraction bit.
template <typename F>
inline constexpr typename Format<F>::Bits kInfinityBits =
    static_cast<typename Format<F>::Bits>(2 * Format<F>::kBias + 1)
    << Format<F>::kFraction;

template <typename F>
inline constexpr
    typename Format<F>::Bits kSignBit = static_cast<typename Format<F>::Bits>(1)
                                        << (8 * sizeof(F) - 1);

}  // namespace orch::math
