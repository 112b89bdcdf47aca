// Functions of four floats at once: the operations of those for one, in the
// same order, so that bits are the same. Where one takes a branch, these
// compute both and choose.
#pragma once

#include "math_erf.h"
#include "math_exp.h"
#include "math_log.h"
#include "math_power.h"
#include "math_trig.h"
#include "orch/lanes.h"

#if ORCH_VECTORS

namespace orch::math {

__attribute__((noinline)) Lanes exp(Lanes x) {
  using C = Constants<float>;
  const Lanes low = C::kSmallest;
  const Lanes high = C::kLargest;
  IntLanes k;
  const Lanes y = exp_rest<float>(within(x, low, high), k);
  // In two steps, as above. The first is exact, the second has what is special:
  // a number for 2^k that makes the product 0, infinite or NaN.
  const IntLanes half = shifted_down<1>(k);
  const Lanes infinity = x + from_bits<float>(kInfinityBits<float>);
  Lanes power = if_at_least(high, x, power_of_two<float>(k - half), infinity);
  power = if_above(low, x, 0.0F, power);
  return from_bits(to_bits(y) + shifted_up<23>(half)) * power;
}

Lanes tanh(Lanes x) {
  const IntLanes sign = sign_of(x);
  const Lanes a = from_bits(to_bits(x) ^ sign);
  const Lanes large = 1 - 2 / (exp(2 * a) + 1);
  const Lanes y = if_at_least(a, 0.55F, large, small_tanh<float>(a));
  return from_bits(to_bits(y) | sign);
}

Lanes erf(Lanes x) {
  using C = ErfConstants<float>;
  const IntLanes sign = sign_of(x);
  const Lanes size = from_bits(to_bits(x) ^ sign);
  // From 4 on it is 1. Powers of larger numbers would be subnormal.
  const Lanes a = if_above(size, 4.0F, 4.0F, size);
  const Lanes large = 1 - exp(-(a * a)) * C::tail(1 / (a + 2) - C::kCenter);
  const Lanes small = a + a * C::small(a * a);
  return from_bits(to_bits(if_at_least(a, 1.0F, large, small)) | sign);
}

Lanes sqrt(Lanes x) { return root_of(x); }

Lanes expm1(Lanes x) {
  using C = Constants<float>;
  constexpr int kDigits = Format<float>::kFraction + 1;
  const Lanes high = C::kLargest;
  IntLanes k;
  // From the lower limit on it is -1.
  const Parts<Lanes> y =
      exp_parts_of<float>(within(x, -0.7F * kDigits - 1, high), Lanes(0.0F), k);
  // As one of few digits, where the scalar form has some shortcuts.
  const Lanes whole = number_of(k);
  const Lanes less =
      if_above(whole, 2.0F * kDigits, 0.0F, power_of_two<float>(-k));
  const Lanes fits = if_at_least(whole, kDigits, 1.0F, 1 - less);
  const Parts<Lanes> sum = sum_of(fits, y.high);
  const Lanes rest = if_at_least(whole, kDigits, y.low - less, y.low);
  const IntLanes half = shifted_down<1>(k);
  const Lanes power = if_at_least(high, x, power_of_two<float>(k - half),
                                  x + from_bits<float>(kInfinityBits<float>));
  const Lanes all = sum.high + (sum.low + rest);
  const Lanes product = from_bits(to_bits(all) + shifted_up<23>(half)) * power;
  return from_bits(to_bits(product) | sign_of(x));
}

/// NaN.
inline Lanes not_ordinary() {
  return from_bits(bits_of(kInfinityBits<float> | 1U << 22));
}

/// y where x is positive and finite, else NaN.
inline Lanes if_ordinary(Lanes x, Lanes y) {
  const Lanes none = not_ordinary();
  y = if_above(x, from_bits<float>(kInfinityBits<float> - 1), none, y);
  return if_above(x, 0.0F, y, none);
}

Lanes log(Lanes x) {
  Lanes f;
  const Lanes whole = split(x, f);
  return if_ordinary(x, log_sum<float>(whole, f, Lanes(0.0F)));
}

Lanes log1p(Lanes x) {
  // The larger of x and 1 first.
  const Lanes one = 1.0F;
  const Lanes large = if_above(x, 1.0F, x, one);
  const Parts<Lanes> sum = sum_of(large, if_above(x, 1.0F, one, x));
  Lanes f;
  const Lanes whole = split(sum.high, f);
  const Lanes rest = sum.low / sum.high;
  // Near 0 no sum is needed, and none is rounded.
  const Lanes zero = 0.0F;
  const auto near = [&](Lanes yes, Lanes no) {
    return if_above(x, -0.29F, if_above(0.41F, x, yes, no), no);
  };
  const Lanes y =
      log_sum<float>(near(zero, whole), near(x, f), near(zero, rest));
  const Lanes all = if_ordinary(sum.high, y);
  return from_bits(to_bits(all) | sign_of(x));
}

Lanes log2(Lanes x) {
  using L = Log<float>;
  Lanes f;
  const Lanes whole = split(x, f);
  return if_ordinary(
      x, log_to_base<float>(whole, f, {L::kPerLn2High, L::kPerLn2Low},
                            {1.0F, 0.0F}));
}

Lanes log10(Lanes x) {
  using L = Log<float>;
  Lanes f;
  const Lanes whole = split(x, f);
  return if_ordinary(
      x, log_to_base<float>(whole, f, {L::kPerLn10High, L::kPerLn10Low},
                            {L::kLog2High, L::kLog2Low}));
}

/// Of positive numbers, where the result is neither 0 nor infinite.
Lanes pow(Lanes x, Lanes y) {
  using C = Constants<float>;
  const Parts<Lanes> log = log_parts<float>(x);
  Parts<Lanes> t = product_of(y, log.high);
  t.low = t.low + y * log.low;
  const Lanes low = C::kSmallest - 1;
  const Lanes high = C::kLargest + 1;
  IntLanes k;
  const Parts<Lanes> e =
      exp_parts_of<float>(within(t.high, low, high), t.low, k);
  const Parts<Lanes> sum = sum_of(Lanes(1.0F), e.high);
  const IntLanes half = shifted_down<1>(k);
  const Lanes power =
      from_bits(to_bits(sum.high + (sum.low + e.low)) + shifted_up<23>(half)) *
      power_of_two<float>(k - half);
  const Lanes none = not_ordinary();
  return if_ordinary(
      x, if_at_least(t.high, low, if_above(high, t.high, power, none), none));
}

/// sin(x + base * pi / 2), for |x| < 2^25 that are not next to multiples of
/// pi / 2. As trig_of and reduce: the bits of 2 / pi that matter begin in their
/// first word.
__attribute__((noinline)) static Lanes trig(Lanes x, uint32_t base) {
  using T = Trig<float>;
  const IntLanes sign = sign_of(x);
  const IntLanes bits = to_bits(x) ^ sign;
  const IntLanes shift =
      power_of_two(shifted_down<23>(bits) + (7 - Format<float>::kBias));
  const IntLanes word = bits_of(T::kTwoPerPi[2]);
  const IntLanes first = bits_of(T::kTwoPerPi[1]);
  const IntLanes last = lower_product(word, shift) |
                        upper_product(bits_of(T::kTwoPerPi[3]), shift);
  const IntLanes second =
      lower_product(first, shift) | upper_product(word, shift);
  const IntLanes significand =
      with_bits<0x00800000>(shifted_in_zeros<9>(shifted_up<9>(bits)));
  const IntLanes term = lower_product(significand, second);
  const IntLanes middle = term + upper_product(significand, last);
  // What is added has no highest bit.
  const IntLanes carry =
      shifted_in_zeros<31>(term & (middle ^ bits_of(0xFFFFFFFFU)));
  const IntLanes high =
      lower_product(significand, upper_product(first, shift)) +
      upper_product(significand, second) + carry;

  const IntLanes flip = shifted_down<31>(shifted_up<2>(high));
  const IntLanes top =
      (shifted_up<2>(high) | shifted_in_zeros<30>(middle)) ^ flip;
  const IntLanes zeros = leading_zeros(top);
  const IntLanes scale = power_of_two(zeros);
  const IntLanes fraction = lower_product(top, scale) |
                            upper_product(shifted_up<2>(middle) ^ flip, scale);
  const Lanes none = not_ordinary();
  const Lanes size =
      unsigned_number_of(upper_product(fraction, bits_of(0xC90FDAA2U))) *
      power_of_two<float>(bits_of(0U - 31) - zeros);
  const Lanes rest = from_bits(
      to_bits(if_at_least(size, 0x1p-29F, size, none)) ^ shifted_up<31>(flip));

  const Lanes a = from_bits(bits);
  const Lanes limit = T::kQuarterPi;
  const Lanes r = if_at_least(limit, a, a, rest);
  const IntLanes turns = shifted_in_zeros<30>(high) - flip;
  const IntLanes quarters =
      to_bits(if_at_least(limit, a, 0.0F, from_bits(turns))) +
      static_cast<int32_t>(base);
  const Lanes z = r * r;
  const Lanes sine = r + r * (z * T::sin_kernel(z));
  const Lanes half = z * 0.5F;
  const Lanes w = 1 - half;
  const Lanes cosine = w + ((1 - w - half) + z * z * T::cos_kernel(z));
  const Lanes y = if_negative(shifted_up<31>(quarters), cosine, sine);
  // An odd function of x, or an even one.
  const IntLanes odd = base == 0 ? sign : bits_of(0);
  const IntLanes turned = shifted_up<31>(shifted_in_zeros<1>(quarters)) ^ odd;
  return if_above(0x1p25F, a, from_bits(to_bits(y) ^ turned), none);
}

Lanes sin(Lanes x) { return trig(x, 0); }
Lanes cos(Lanes x) { return trig(x, 1); }

}  // namespace orch::math

#endif
