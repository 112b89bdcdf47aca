// sin, cos and tan, once for float and double.
#pragma once

#include "float_format.h"
#include "math_parts.h"
#include "orch/math.h"

namespace orch::math {

/// Constants of one format. The coefficients come from interpolation at
/// Chebyshev nodes, computed with 400 bits.
template <typename F>
struct Trig;

template <>
struct Trig<float> {
  static constexpr float kQuarterPi = 0.785398163F;
  /// (sin(r) / r - 1) / z for z = r * r, |r| <= pi / 4.
  template <typename V>
  static V sin_kernel(V z) {
    return -0.16666666663854F +
           z * (0.0083333318742737F +
                z * (-0.00019840086499594F + z * 2.7249895230612e-6F));
  }
  /// (cos(r) - 1 + z / 2) / z^2.
  template <typename V>
  static V cos_kernel(V z) {
    return 0.041666664658901F +
           z * (-0.0013888302919114F + z * 2.4547916853691e-5F);
  }
  /// Of numbers up to kFew the multiple of pi / 2 is subtracted in floats,
  /// unless next to nothing is left: products of kHalfPi, which add up to
  /// pi / 2, with whole numbers below 2^12 are exact, but for the last.
  static constexpr float kFew = 6400;
  static constexpr float kLeast = 0x1p-10F;
  static constexpr float kPerHalfPi = 0x1.45f306p-1F;
  static constexpr float kHalfPi[] = {0x1.92p+0F, 0x1.fb4p-12F, 0x1.444p-24F,
                                      0x1.68c234p-39F};
  /// (tan(r) / r - 1) / z.
  static constexpr float kTanTerms[] = {
      0.00384313986F, 0.0011853216F, 0.0099621471F, 0.0216211267F,
      0.0539944656F,  0.133332312F,  0.333333343F};
  /// Bits of 2 / pi after kPad zeros: as many as the largest number needs.
  static constexpr int kPad = 32;
  static constexpr uint32_t kTwoPerPi[] = {
      0x00000000U, 0xA2F9836EU, 0x4E441529U, 0xFC2757D1U,
      0xF534DDC0U, 0xDB629599U, 0x3C439041U, 0xFE5163ABU};
};

template <>
struct Trig<double> {
  static constexpr double kQuarterPi = 0.78539816339744831;
  static double sin_kernel(double z) {
    return -0.16666666666666664622 +
           z * (0.0083333333333309472945 +
                z * (-0.00019841269836756772528 +
                     z * (2.7557316101617874437e-6 +
                          z * (-2.505113165023518147e-8 +
                               z * 1.5918115263265975194e-10))));
  }
  static double cos_kernel(double z) {
    return 0.041666666666666665388 +
           z * (-0.0013888888888887396492 +
                z * (0.000024801587298764560771 +
                     z * (-2.7557317271145145962e-7 +
                          z * (2.0876146146558611582e-9 +
                               z * -1.1382623647474604629e-11))));
  }
  static constexpr double kTanTerms[] = {
      8.48334725267473e-06,    -1.8315342802086701e-05, 3.6516181936133423e-05,
      -1.1013613221811344e-05, 5.5587847105701477e-05,  8.9985202983422889e-05,
      0.00024122635351268799,  0.00058957560615445547,  0.0014559027390503058,
      0.0035921209805615966,   0.0088632360034858176,   0.021869488517074379,
      0.053968253968655462,    0.13333333333333,        0.33333333333333331};
  static constexpr int kPad = 64;
  static constexpr uint32_t kTwoPerPi[] = {
      0x00000000U, 0x00000000U, 0xA2F9836EU, 0x4E441529U, 0xFC2757D1U,
      0xF534DDC0U, 0xDB629599U, 0x3C439041U, 0xFE5163ABU, 0xDEBBC561U,
      0xB7246E3AU, 0x424DD2E0U, 0x06492EEAU, 0x09D1921CU, 0xFE1DEB1CU,
      0xB129A73EU, 0xE88235F5U, 0x2EBB4484U, 0xE99C7026U, 0xB45F7E41U,
      0x3991D639U, 0x835339F4U, 0x9C845F8BU, 0xBDF9283BU, 0x1FF897FFU,
      0xDE05980FU, 0xEF2F118BU, 0x5A0A6D1FU, 0x6D367ECFU, 0x27CB09B7U,
      0x4F463F66U, 0x9E5FEA2DU, 0x7527BAC7U, 0xEBE5F17BU, 0x3D0739F7U,
      0x8A5292EAU, 0x6BFB5FB1U, 0x1F8D5D08U, 0x56033046U};
};

/// 32 bits from `bit` on, counted from the highest of the first word.
inline uint32_t bits_at(const uint32_t* words, int bit) {
  const uint32_t* word = words + bit / 32;
  const int shift = bit % 32;
  const uint64_t both = static_cast<uint64_t>(word[0]) << 32 | word[1];
  return static_cast<uint32_t>((both << shift) >> 32);
}

/// `fraction` * 2^-zeros in quarter turns as an angle, rounded once, or in two
/// parts. The highest bit of the fraction, which has 32 or 64 bits, is set.
inline uint32_t times_half_pi(uint32_t fraction) {
  constexpr uint32_t kHalfPi = 0xC90FDAA2U;  // times 2^31
  return static_cast<uint32_t>((static_cast<uint64_t>(fraction) * kHalfPi) >>
                               32);
}
inline void angle(uint32_t fraction, int zeros, float& rest) {
  rest = static_cast<float>(times_half_pi(fraction)) *
         power_of_two<float>(-31 - zeros);
}
inline void angle(uint32_t fraction, int zeros, Parts<float>& rest) {
  const uint32_t product = times_half_pi(fraction);
  const float unit = power_of_two<float>(-31 - zeros);
  rest = sum_of(static_cast<float>(product & 0xFFFF0000U) * unit,
                static_cast<float>(product & 0xFFFFU) * unit);
}
inline uint64_t times_half_pi(uint64_t fraction) {
  constexpr uint32_t kHigh = 0xC90FDAA2U;  // pi / 2 times 2^63
  constexpr uint32_t kLow = 0x2168C234U;
  const uint64_t high = fraction >> 32;
  const uint64_t low = fraction & 0xFFFFFFFFU;
  // What is left out is less than 3 units of 2^-64.
  return high * kHigh + ((high * kLow) >> 32) + ((low * kHigh) >> 32);
}
inline void angle(uint64_t fraction, int zeros, double& rest) {
  uint64_t product = times_half_pi(fraction);
  if (product >> 63 == 0) {
    product <<= 1;
    ++zeros;
  }
  product = (product >> 11) + ((product >> 10) & 1);  // rounded to 53 bits
  rest = static_cast<double>(static_cast<int64_t>(product)) *
         power_of_two<double>(-52 - zeros);
}
inline void angle(uint64_t fraction, int zeros, Parts<double>& rest) {
  const uint64_t product = times_half_pi(fraction);
  const int32_t low = static_cast<int32_t>(product & 0xFFFFF);
  const double unit = power_of_two<double>(-63 - zeros);
  rest = sum_of(static_cast<double>(static_cast<int64_t>(product >> 20)) *
                    power_of_two<double>(-43 - zeros),
                static_cast<double>(low) * unit);
}

/// x = quarters * pi / 2 + rest for `bits` of a finite x > pi / 4, where
/// |rest| <= pi / 4; returns the quarters, modulo 4.
///
/// Source: Payne and Hanek, "Radian reduction for trigonometric functions",
/// 1983. The significand is multiplied by those bits of 2 / pi that matter: the
/// ones before give multiples of 4, those after them are too small. No number
/// of the format comes so near to a multiple of pi / 2 that the fraction would
/// begin with more than 32 (float) or 64 (double) zeros.
template <typename R>
unsigned reduce(uint64_t bits, R& rest) {
  using F = double;
  constexpr int kSignificand = 2;  // in words
  constexpr int kWords = 3 * kSignificand;
  constexpr int kFraction = Format<F>::kFraction;
  constexpr uint64_t kOne = static_cast<uint64_t>(1) << kFraction;
  // Of the last place.
  const int exponent =
      static_cast<int>(bits >> kFraction) - Format<F>::kBias - kFraction;
  const uint64_t significand = (bits & (kOne - 1)) | kOne;

  // Modulo 4, in units of 2^(2 - 32 * kWords).
  uint32_t product[kWords + 1] = {};
  const int first = Trig<F>::kPad + exponent - 2;
  for (int j = 0; j < kSignificand; ++j) {
    const uint32_t factor = static_cast<uint32_t>(significand >> (32 * j));
    uint64_t carry = 0;
    for (int i = kWords - j; i-- > 0;) {
      const uint32_t word = bits_at(Trig<F>::kTwoPerPi, first + 32 * (i + j));
      carry += static_cast<uint64_t>(word) * factor + product[i];
      product[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }

  // The rest is negative where the fraction is above a half.
  const unsigned quarters = product[0] >> 30;
  const unsigned above = (product[0] >> 29) & 1U;
  const uint32_t flip = 0U - above;
  uint32_t fraction[kWords + 1] = {};
  for (int i = 0; i < kWords; ++i) {
    fraction[i] = bits_at(product, 2 + 32 * i) ^ flip;
  }
  int zeros = 0;
  while (zeros < 32 * kSignificand && fraction[zeros / 32] == 0) zeros += 32;
  while ((bits_at(fraction, zeros) >> 31) == 0 && zeros < 64 * kSignificand) {
    ++zeros;
  }
  uint64_t top = bits_at(fraction, zeros);
  top = top << 32 | bits_at(fraction, zeros + 32);
  angle(top, zeros, rest);
  if (above != 0) rest = -rest;
  return quarters + above;
}

/// a - whole * pi / 2 for 0 <= a <= kFew and the nearest whole number, or next
/// to it: exact but for some 2^-47, where the first part is kLeast or more.
template <typename V>
Parts<V> rest_of(V a, V whole) {
  using T = Trig<float>;
  // Exact: all are multiples of the last place of `a`, or of 2^-23.
  const V few = a - whole * T::kHalfPi[0] - whole * T::kHalfPi[1];
  const V next = whole * T::kHalfPi[2];
  const V high = few - next;
  return {high, ((few - high) - next) - whole * T::kHalfPi[3]};
}
inline void set_rest(Parts<float> parts, float& rest) {
  rest = parts.high + parts.low;
}
inline void set_rest(Parts<float> parts, Parts<float>& rest) {
  rest = sum_of(parts.high, parts.low);
}

/// The same for float, whose significand is one word.
template <typename R>
unsigned reduce(uint32_t bits, R& rest) {
  if (bits <= to_bits(Trig<float>::kFew)) {
    const float a = from_bits<float>(bits);
    const int whole = static_cast<int>(a * Trig<float>::kPerHalfPi + 0.5F);
    const Parts<float> parts = rest_of(a, static_cast<float>(whole));
    if (to_bits(parts.high) << 1 >= to_bits(Trig<float>::kLeast) << 1) {
      set_rest(parts, rest);
      return static_cast<unsigned>(whole);
    }
  }
  constexpr uint32_t kOne = 1U << Format<float>::kFraction;
  const int first = static_cast<int>(bits >> Format<float>::kFraction) -
                    Format<float>::kBias - Format<float>::kFraction +
                    Trig<float>::kPad - 2;
  const uint64_t significand = (bits & (kOne - 1)) | kOne;
  const uint32_t* const words = Trig<float>::kTwoPerPi;
  uint64_t product = significand * bits_at(words, first + 64);
  const uint32_t low = static_cast<uint32_t>(product);
  product = (product >> 32) + significand * bits_at(words, first + 32);
  const uint32_t middle = static_cast<uint32_t>(product);
  const uint32_t high = static_cast<uint32_t>(
      (product >> 32) + significand * bits_at(words, first));

  // The rest is negative where the fraction is above a half.
  const unsigned above = (high >> 29) & 1U;
  const uint32_t flip = 0U - above;
  uint32_t top = (high << 2 | middle >> 30) ^ flip;
  uint32_t next = (middle << 2 | low >> 30) ^ flip;
  int zeros = 0;
  if (top == 0) {
    zeros = 32;
    top = next;
    next = low << 2 ^ flip;
  }
  for (; top >> 31 == 0; ++zeros) {
    top = top << 1 | next >> 31;
    next <<= 1;
  }
  angle(top, zeros, rest);
  if (above != 0) rest = -rest;
  return (high >> 30) + above;
}

/// sin(x + quarters * pi / 2).
template <typename F>
F trig_of(F x, unsigned quarters) {
  using Bits = typename Format<F>::Bits;
  using T = Trig<F>;
  const Bits size = to_bits(x) & ~kSignBit<F>;
  if (size >= kInfinityBits<F>) return x - x;  // NaN
  F r = from_bits<F>(size);
  // An odd function of x, or an even one.
  Bits sign = quarters == 0 ? to_bits(x) & kSignBit<F> : 0;
  if (!(r <= T::kQuarterPi)) quarters += reduce(size, r);
  const F z = r * r;
  F y;
  if ((quarters & 1U) == 0) {
    y = r + r * (z * T::sin_kernel(z));
  } else {
    const F half = z / 2;
    const F w = 1 - half;
    y = w + ((1 - w - half) + z * z * T::cos_kernel(z));
  }
  if ((quarters & 2U) != 0) sign ^= kSignBit<F>;
  return from_bits<F>(to_bits(y) ^ sign);
}

template <typename F>
F tan_of(F x) {
  using Bits = typename Format<F>::Bits;
  const Bits sign = to_bits(x) & kSignBit<F>;
  const Bits size = to_bits(x) ^ sign;
  if (size >= kInfinityBits<F>) return x - x;  // NaN
  Parts<F> r = {from_bits<F>(size), 0};
  unsigned quarters = 0;
  if (!(r.high <= Trig<F>::kQuarterPi)) quarters = reduce(size, r);
  const F z = r.high * r.high;
  F more = r.high * (z * polynomial(Trig<F>::kTanTerms, z));
  F y = r.high + more;
  more += r.low * (1 + y * y);
  if ((quarters & 1U) == 0) {
    y = r.high + more;
  } else {
    // -1 / y = t - (1 + t * y) / y for any t
    const Parts<F> sum = sum_of(r.high, more);
    y = -1 / sum.high;
    const F t = upper_half(y);
    const F top = upper_half(sum.high);
    const F rest = (sum.high - top) + sum.low;
    y = t + y * ((1 + t * top) + t * rest);
  }
  return from_bits<F>(to_bits(y) ^ sign);
}

}  // namespace orch::math
