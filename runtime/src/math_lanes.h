// Functions of four floats at once: the operations of those for one, in the
// same order, so that bits are the same. Where one takes a branch, these
// compute both and choose.
#pragma once

#include "math_erf.h"
#include "math_exp.h"
#include "math_log.h"
#include "math_power.h"
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
  Lanes power = if_at_least(high, x, power_of_two(k - half), infinity);
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
  const Lanes less = if_above(whole, 2.0F * kDigits, 0.0F, power_of_two(-k));
  const Lanes fits = if_at_least(whole, kDigits, 1.0F, 1 - less);
  const Parts<Lanes> sum = sum_of(fits, y.high);
  const Lanes rest = if_at_least(whole, kDigits, y.low - less, y.low);
  const IntLanes half = shifted_down<1>(k);
  const Lanes power = if_at_least(high, x, power_of_two(k - half),
                                  x + from_bits<float>(kInfinityBits<float>));
  const Lanes all = sum.high + (sum.low + rest);
  const Lanes product = from_bits(to_bits(all) + shifted_up<23>(half)) * power;
  return from_bits(to_bits(product) | sign_of(x));
}

/// `y` = log(x) for a positive finite x, and what it is for others.
inline Lanes with_special_logs(Lanes x, Lanes y) {
  constexpr uint32_t kInfinity = kInfinityBits<float>;
  constexpr uint32_t kNan = kInfinity | 1U << 22;
  y = if_above(x, from_bits<float>(kInfinity - 1), x, y);
  y = if_above(x, 0.0F, y, from_bits<float>(kInfinity | kSignBit<float>));
  return if_at_least(x, 0.0F, y, from_bits<float>(kNan));
}

/// x = 2^whole * (1 + f) as `split`. Subnormal numbers, which vectors may not
/// know, are multiplied before.
inline Lanes split(Lanes x, Lanes& f) {
  const int32_t lowest = 0x3F3504F3;
  Lanes down = static_cast<float>(Format<float>::kBias);
#if !ORCH_VECTORS_FLUSH
  const Lanes smallest = 0x1p-126F;
  down = if_at_least(x, smallest, down, down + 25);
  x = if_at_least(x, smallest, x, x * 0x1p25F);
#endif
  const IntLanes bits = to_bits(x) + (0x3F800000 - lowest);
  const IntLanes k = shifted_down<23>(bits);
  f = from_bits(bits - shifted_up<23>(k) + lowest) - 1;
  return number_of(k) - down;
}

Lanes log(Lanes x) {
  Lanes f;
  const Lanes whole = split(x, f);
  return with_special_logs(x, log_sum<float>(whole, f, Lanes(0.0F)));
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
  const Lanes all = with_special_logs(sum.high, y);
  return from_bits(to_bits(all) | sign_of(x));
}

}  // namespace orch::math

#endif
