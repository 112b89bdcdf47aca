// Functions of four floats at once: the operations of those for one, in the
// same order, so that bits are the same. Where one takes a branch, these
// compute both and choose.
#pragma once

#include "math_arc.h"
#include "math_area.h"
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

/// e^(y * log), V: Lanes, or those with other products.
template <typename V>
inline __attribute__((always_inline)) Lanes power_of(V log_high, V log_low,
                                                     V y) {
  using C = Constants<float>;
  Parts<V> t = product_of(y, log_high);
  t.low = t.low + y * log_low;
  const Lanes low = C::kSmallest - 1;
  const Lanes high = C::kLargest + 1;
  IntLanes k;
  const Parts<Lanes> e =
      exp_parts_of<float, Lanes>(within(t.high, low, high), t.low, k);
  const Parts<Lanes> sum = sum_of(Lanes(1.0F), e.high);
  const IntLanes half = shifted_down<1>(k);
  const Lanes power =
      from_bits(to_bits(sum.high + (sum.low + e.low)) + shifted_up<23>(half)) *
      power_of_two<float>(k - half);
  const Lanes none = not_ordinary();
  return if_at_least(t.high, low, if_above(high, t.high, power, none), none);
}

#if ORCH_FUSED
/// Whether the processor has a * b - c with one rounding, and the system keeps
/// the registers of AVX. Asked once: in a virtual machine the question is slow.
static bool has_fused() {
  constexpr uint8_t kYes = 1;
  constexpr uint8_t kNo = 2;
  // Every thread finds the same.
  static uint8_t known = 0;
  uint8_t answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (answer != 0) return answer == kYes;
  uint32_t a = 1;
  uint32_t b;
  uint32_t c = 0;
  uint32_t d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr uint32_t kFused = 1U << 12;
  constexpr uint32_t kEnabled = 1U << 27;
  constexpr uint32_t kAvx = 1U << 28;
  constexpr uint32_t kAll = kFused | kEnabled | kAvx;
  answer = kNo;
  if ((c & kAll) == kAll) {
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    if ((a & 6U) == 6U) answer = kYes;
  }
  __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  return answer == kYes;
}

__attribute__((noinline, flatten, target("avx"))) static LogLanes fused_log(
    Lanes x) {
  const Parts<FusedLanes> log = log_parts<float, FusedLanes>(x);
  return {if_ordinary(x, log.high), log.low};
}

__attribute__((noinline, flatten, target("avx"))) static Lanes fused_power(
    const LogLanes& log, Lanes y) {
  return power_of<FusedLanes>(log.high, log.low, y);
}
#endif

LogLanes log_in_parts(Lanes x) {
#if ORCH_FUSED
  if (has_fused()) return fused_log(x);
#endif
  const Parts<Lanes> log = log_parts<float>(x);
  return {if_ordinary(x, log.high), log.low};
}

Lanes pow(const LogLanes& log, Lanes y) {
#if ORCH_FUSED
  if (has_fused()) return fused_power(log, y);
#endif
  return power_of(log.high, log.low, y);
}

Lanes asin(Lanes x) {
  const IntLanes sign = sign_of(x);
  const Lanes a = from_bits(to_bits(x) ^ sign);
  const Lanes large = from_quarters(1.0F, twice(half_arc<float>(a)));
  const Lanes y = if_at_least(a, 0.5F, large, a + small_arc<float>(a));
  return from_bits(to_bits(y) | sign);
}

Lanes acos(Lanes x) {
  const Lanes a = from_bits(to_bits(x) ^ sign_of(x));
  const Lanes small = from_quarters(1.0F, Parts<Lanes>{x, small_arc<float>(x)});
  const Parts<Lanes> half = half_arc<float>(a);
  const Lanes large = if_above(x, 0.0F, 2 * (half.high + half.low),
                               from_quarters(2.0F, twice(half)));
  return if_at_least(a, 0.5F, large, small);
}

Lanes atan(Lanes x) {
  using A = Arc<float>;
  const IntLanes sign = sign_of(x);
  const Lanes a = from_bits(to_bits(x) ^ sign);
  // The angle that is subtracted, and its tangent; 0 where none is.
  const auto choose = [&](float none, float half, float one, float more,
                          float most) {
    Lanes y = if_above(a, 0.4375F, Lanes(half), Lanes(none));
    y = if_above(a, 0.6875F, Lanes(one), y);
    y = if_above(a, 1.1875F, Lanes(more), y);
    return if_above(a, 2.4375F, Lanes(most), y);
  };
  const Lanes high = choose(0, A::kAngles[0].high, A::kAngles[1].high,
                            A::kAngles[2].high, A::kHalfPiHigh);
  const Lanes low = choose(0, A::kAngles[0].low, A::kAngles[1].low,
                           A::kAngles[2].low, A::kHalfPiLow);
  const Lanes other = choose(0, 0.5F, 1, 1.5F, 0);
  const Lanes top = if_above(a, 2.4375F, Lanes(-1.0F), a - other);
  const Lanes r = top / if_above(a, 2.4375F, a, 1 + a * other);
  const Lanes z = r * r;
  const Lanes more = r * (z * polynomial(A::kTanTerms, z));
  const Parts<Lanes> sum = sum_of(high, r);
  const Lanes y = sum.high + (sum.low + (low + more));
  return from_bits(to_bits(y) | sign);
}

/// (e^a + sign * e^-a) / 2 for a >= 0, as the plain form.
__attribute__((noinline)) static Lanes half_exp(Lanes a, float sign) {
  const Lanes high = Constants<float>::kLargest + 1;
  IntLanes k;
  const Parts<Lanes> y =
      exp_parts_of<float>(within(a, 0.0F, high), Lanes(0.0F), k);
  const Parts<Lanes> sum = sum_of(Lanes(1.0F), y.high);
  const Lanes low = sum.low + y.low;
  // Where e^-a shows; else any number.
  const IntLanes shows = k + (-Format<float>::kFraction - 1);
  const IntLanes few =
      to_bits(if_negative(shows, from_bits(k + k), from_bits(bits_of(0))));
  const Lanes less = sign * power_of_two<float>(-few) / (sum.high + low);
  const Lanes all = sum.high + if_negative(shows, low + less, low);
  const IntLanes half = shifted_down<1>(k);
  const Lanes power = power_of_two<float>(k - half + -1);
  return if_at_least(high, a,
                     from_bits(to_bits(all) + shifted_up<23>(half)) * power,
                     a + from_bits<float>(kInfinityBits<float>));
}

Lanes cosh(Lanes x) { return half_exp(from_bits(to_bits(x) ^ sign_of(x)), 1); }

Lanes sinh(Lanes x) {
  const IntLanes sign = sign_of(x);
  const Lanes a = from_bits(to_bits(x) ^ sign);
  const Lanes z = a * a;
  const Lanes small = a + a * (z * polynomial(Power<float>::kSinhTerms, z));
  const Lanes y = if_at_least(a, 1.0F, half_exp(a, -1), small);
  return from_bits(to_bits(y) | sign);
}

/// log(x.high + x.low) for a positive x.
__attribute__((noinline)) static Lanes log_of(const Parts<Lanes>& x) {
  Lanes f;
  const Lanes whole = split(x.high, f);
  return log_sum<float>(whole, f, x.low / x.high);
}

Lanes acosh(Lanes x) {
  const Lanes none = not_ordinary();
  const Lanes y = log_of(area_sum(x, Lanes(-1.0F)));
  return if_above(kLargeArea<float>, x, if_above(x, 1.0F, y, none), none);
}

Lanes asinh(Lanes x) {
  const IntLanes sign = sign_of(x);
  const Lanes a = from_bits(to_bits(x) ^ sign);
  const Lanes large = log_of(area_sum(a, Lanes(1.0F)));
  const Lanes few = kFewTerms<float>;
  const Lanes y = if_above(few, a, a - a * (a * a / 6.0F), large);
  return if_above(kLargeArea<float>, a, from_bits(to_bits(y) | sign),
                  not_ordinary());
}

Lanes atanh(Lanes x) {
  const IntLanes sign = sign_of(x);
  const Lanes a = from_bits(to_bits(x) ^ sign);
  const Lanes one = 1.0F;
  const Lanes large =
      log_of(quotient_of(sum_of(one, a), sum_of(one, -a))) / 2.0F;
  const Lanes few = kFewTerms<float>;
  const Lanes y = if_above(few, a, a + a * (a * a / 3.0F), large);
  return if_above(one, a, from_bits(to_bits(y) | sign), not_ordinary());
}

/// Of |x| = quarters * pi / 2 + rest the quarters and the rest, as the plain
/// form: NaN where that needs more digits than `rest_of` has.
struct Turn {
  Lanes a;
  IntLanes quarters;
  Parts<Lanes> rest;
};
inline __attribute__((always_inline)) Turn turn_of(Lanes a) {
  using T = Trig<float>;
  const Lanes none = not_ordinary();
  const IntLanes whole = whole_of(a * T::kPerHalfPi + 0.5F);
  const Parts<Lanes> parts = rest_of(a, number_of(whole));
  const Lanes size = from_bits(to_bits(parts.high) ^ sign_of(parts.high));
  const Lanes high = if_at_least(size, T::kLeast, parts.high, none);
  const Lanes limit = T::kQuarterPi;
  const Lanes some = if_at_least(Lanes(T::kFew), a, high, none);
  return {
      a,
      to_bits(if_at_least(limit, a, 0.0F, from_bits(whole))),
      {if_at_least(limit, a, a, some), if_at_least(limit, a, 0.0F, parts.low)}};
}

/// sin(x + base * pi / 2).
__attribute__((noinline)) static Lanes trig_of(Lanes x, int32_t base) {
  using T = Trig<float>;
  const IntLanes sign = sign_of(x);
  const Turn turn = turn_of(from_bits(to_bits(x) ^ sign));
  const IntLanes quarters = turn.quarters + base;
  const Lanes r = turn.rest.high + turn.rest.low;
  const Lanes z = r * r;
  const Lanes sine = r + r * (z * T::sin_kernel(z));
  const Lanes half = z * 0.5F;
  const Lanes w = 1 - half;
  const Lanes cosine = w + ((1 - w - half) + z * z * T::cos_kernel(z));
  const Lanes y = if_negative(shifted_up<31>(quarters), cosine, sine);
  // An odd function of x, or an even one.
  const IntLanes odd = base == 0 ? sign : bits_of(0);
  const IntLanes turned = shifted_up<31>(shifted_in_zeros<1>(quarters)) ^ odd;
  return from_bits(to_bits(y) ^ turned);
}

Lanes sin(Lanes x) { return trig_of(x, 0); }
Lanes cos(Lanes x) { return trig_of(x, 1); }

Lanes tan(Lanes x) {
  const IntLanes sign = sign_of(x);
  const Turn turn = turn_of(from_bits(to_bits(x) ^ sign));
  const Parts<Lanes> r = sum_of(turn.rest.high, turn.rest.low);
  const Lanes z = r.high * r.high;
  const Lanes first = r.high * (z * polynomial(Trig<float>::kTanTerms, z));
  const Lanes about = r.high + first;
  const Lanes more = first + r.low * (1 + about * about);
  const Parts<Lanes> sum = sum_of(r.high, more);
  // -1 / y, as the plain form.
  const Lanes y = -1 / sum.high;
  const Lanes t = upper_half(y);
  const Lanes top = upper_half(sum.high);
  const Lanes rest = (sum.high - top) + sum.low;
  const Lanes turned = t + y * ((1 + t * top) + t * rest);
  const Lanes all =
      if_negative(shifted_up<31>(turn.quarters), turned, sum.high);
  return from_bits(to_bits(all) ^ sign);
}

}  // namespace orch::math

#endif
