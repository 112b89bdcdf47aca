#include "orch/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "util/types.h"

namespace orch::test {
namespace {

/// The value of a format with so many exponent and fraction bits, from its
/// definition in IEEE 754.
double value_of(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  }
  if (exponent == 0) {
    return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  }
  return sign * std::ldexp(fraction + (1 << fraction_bits),
                           exponent - bias - fraction_bits);
}

template <typename H>
constexpr int kFraction = kIsSame<H, Half> ? 10 : 7;

template <typename H>
H from_bits(uint32_t bits) {
  H half;
  half.bits = static_cast<uint16_t>(bits);
  return half;
}

TEST_CASE_TEMPLATE("every 16-bit number becomes the float of its value", H,
                   Half, BFloat16) {
  int wrong = 0;
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const H half = from_bits<H>(bits);
    const float got = static_cast<float>(half);
    const double want = value_of(half.bits, 15 - kFraction<H>, kFraction<H>);
    if (std::isnan(want)) {
      wrong += !std::isnan(got);
      continue;
    }
    wrong += static_cast<double>(got) != want;
    wrong += std::signbit(got) != std::signbit(want);
    wrong += H(got).bits != half.bits;  // and back
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("floats between two numbers round to nearest, ties to even",
                   H, Half, BFloat16) {
  int wrong = 0;
  const uint32_t infinity = 0x7FFFU & ~((1U << kFraction<H>)-1);
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    for (const uint32_t sign : {0U, 0x8000U}) {
      const H low = from_bits<H>(bits | sign);
      const H high = from_bits<H>((bits + 1) | sign);
      const float a = static_cast<float>(low);
      // Beyond the largest number, a step further on counts, not infinity.
      const float b =
          bits + 1 == infinity
              ? 2 * a - static_cast<float>(from_bits<H>((bits - 1) | sign))
              : static_cast<float>(high);
      // For bfloat16 the next number may be out of range of float.
      if (std::isinf(b)) continue;
      const float middle = a + (b - a) / 2;
      const H even = (bits & 1U) == 0 ? low : high;
      wrong += H(middle).bits != even.bits;
      wrong += H(std::nextafter(middle, a)).bits != low.bits;
      wrong += H(std::nextafter(middle, b)).bits != high.bits;
      wrong += H(std::nextafter(a, b)).bits != low.bits && middle != a &&
               std::nextafter(a, b) != middle;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("special values", H, Half, BFloat16) {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(H(inf)) == inf);
  CHECK(static_cast<float>(H(-inf)) == -inf);
  CHECK(std::isnan(static_cast<float>(H(std::nanf("")))));
  // A NaN whose payload is only in the low bits must not become infinity.
  CHECK(std::isnan(static_cast<float>(H(float_from_bits(0x7F800001U)))));
  CHECK(std::isnan(static_cast<float>(H(float_from_bits(0xFF800001U)))));
  CHECK(H(-0.0F).bits == 0x8000U);
  CHECK(H(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(static_cast<float>(H(std::numeric_limits<float>::max())) == inf);
}

TEST_CASE("limits of Half") {
  CHECK(Half(65504.0F).bits == 0x7BFFU);
  CHECK(Half(65519.996F).bits == 0x7BFFU);
  CHECK(Half(65520.0F).bits == 0x7C00U);
  CHECK(Half(0x1p-24F).bits == 1);
  CHECK(Half(0x1p-25F).bits == 0);
  CHECK(Half(0x1.000002p-25F).bits == 1);
  CHECK(Half(0x1.FF8p-15F).bits == 0x03FFU);
  CHECK(Half(0x1.FFCp-15F).bits == 0x0400U);
}

}  // namespace
}  // namespace orch::test
