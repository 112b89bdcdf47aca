// Double arithmetic for Arm cores without a double unit, in place of what the
// compilers' libraries round wrongly:
//
// - libgcc's addition and subtraction lose the rounding bit of a difference when the
//   exponents are 33 apart and the difference has one bit less than the larger number;
// - zig's compiler_rt cuts off quotients that are subnormal instead of rounding them.
//
// Results here are what a double unit gives: rounded to nearest, ties to even, with
// subnormals, infinities, NaN and signed zeros. Small code comes before speed; the
// linker drops what a firmware does not call.
//
// Sources: IEEE 754-2019; Arm, Run-time ABI for the Arm Architecture: names of the
// functions, and doubles in core registers whatever the float ABI, so that uint64_t
// stands for double and uint32_t for float.

#include <stdint.h>

#if defined(__arm__) && (!defined(__ARM_FP) || (__ARM_FP & 8) == 0)

namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kQuiet = uint64_t{1} << 51;
constexpr int32_t kMaxExponent = 0x7FF;
constexpr uint64_t kInfinity = uint64_t{kMaxExponent} << 52;
constexpr int32_t kBias = 1023;

/// A finite number: (-1)^sign * significand / 2^63 * 2^(exponent - kBias).
///
/// Its last bit may stand for any number of bits below it ("sticky").
struct Number {
  uint64_t significand;
  int32_t exponent;
};

/// The upper word of a double with nothing but the sign.
uint32_t sign_of(uint64_t bits) {
  return static_cast<uint32_t>(bits >> 32) & 0x80000000U;
}

uint64_t with_sign(uint64_t bits, uint32_t sign) {
  return bits | static_cast<uint64_t>(sign) << 32;
}

int32_t exponent_of(uint64_t bits) {
  return static_cast<int32_t>(bits >> 52) & kMaxExponent;
}

/// x / 2^n for n >= 0, the last bit sticky.
uint64_t shift_right(uint64_t x, int32_t n) {
  if (n > 63) n = 63;  // far below rounding: only that x is not zero matters
  const uint64_t lost = x << (63 - n) << 1;
  return x >> n | (lost != 0 ? 1U : 0U);
}

/// The double next to a number whose exponent is at least 1; beyond the largest,
/// infinity.
uint64_t round(Number x, uint32_t sign) {
  if (x.significand == 0) return with_sign(0, sign);
  int32_t shift = __builtin_clzll(x.significand);
  if (shift >= x.exponent) shift = x.exponent - 1;  // stays subnormal
  x.significand <<= shift;
  x.exponent -= shift;
  if (x.exponent >= kMaxExponent) return with_sign(kInfinity, sign);
  // Sums, not ors: the first bit of a normal significand counts the exponent up, and
  // so does a carry out of rounding.
  uint64_t bits =
      (x.significand >> 11) + (static_cast<uint64_t>(x.exponent - 1) << 52);
  const uint32_t rest = static_cast<uint32_t>(x.significand) & 0x7FFU;
  bits += (rest + 0x3FFU + (static_cast<uint32_t>(bits) & 1U)) >> 11;
  return with_sign(bits, sign);
}

/// Subnormals get the exponent of the smallest normal numbers.
Number unpack(uint64_t bits) {
  const int32_t exponent = exponent_of(bits);
  const uint64_t fraction = bits << 11;
  return exponent == 0 ? Number{fraction & ~kSign, 1}
                       : Number{fraction | kSign, exponent};
}

}  // namespace

extern "C" {

#if defined(__clang__)

uint64_t __aeabi_ddiv(uint64_t a, uint64_t b) {
  const uint64_t x = a & ~kSign;
  const uint64_t y = b & ~kSign;
  const uint32_t sign = sign_of(a ^ b);
  if (x > kInfinity) return a | kQuiet;  // NaN
  if (y > kInfinity) return b | kQuiet;
  if (x == y && (x == 0 || x == kInfinity)) return kInfinity | kQuiet;
  if (x == kInfinity || y == 0) return with_sign(kInfinity, sign);
  if (y == kInfinity || x == 0) return with_sign(0, sign);

  Number n = unpack(x);
  Number d = unpack(y);
  const int32_t n_shift = __builtin_clzll(n.significand);
  const int32_t d_shift = __builtin_clzll(d.significand);
  int32_t exponent = n.exponent - n_shift - (d.exponent - d_shift) + kBias;
  // 53 bits each, and a quotient from 1 up to 2.
  uint64_t remainder = n.significand << n_shift >> 11;
  const uint64_t divisor = d.significand << d_shift >> 11;
  if (remainder < divisor) {
    remainder <<= 1;
    --exponent;
  }
  remainder -= divisor;
  // Long division with digits of 11 bits. One above the divisor's first 21 bits: the
  // guess is never too large, and too small by at most one.
  const uint32_t guess_divisor = static_cast<uint32_t>(divisor >> 32) + 1;
  uint64_t quotient = 1;
  while (quotient >> 55 == 0) {
    remainder <<= 11;
    uint32_t digit = static_cast<uint32_t>(remainder >> 32) / guess_divisor;
    remainder -= digit * divisor;
    if (remainder >= divisor) {
      remainder -= divisor;
      ++digit;
    }
    quotient = quotient << 11 | digit;
  }
  uint64_t significand = quotient << 8 | (remainder != 0 ? 1U : 0U);
  if (exponent < 1) {
    significand = shift_right(significand, 1 - exponent);
    exponent = 1;
  }
  return round({significand, exponent}, sign);
}

#else

// Everything that libgcc has in the object of its addition, under both names: with
// one missing, that object would be linked as well and define the others twice.

uint64_t __aeabi_dadd(uint64_t a, uint64_t b) {
  if (a << 1 < b << 1) {
    const uint64_t larger = b;
    b = a;
    a = larger;
  }
  const bool finite = exponent_of(a) != kMaxExponent;
  if ((a ^ b) == kSign) return finite ? 0 : a | kQuiet;  // x - x, infinity - infinity
  if (!finite) return a << 12 != 0 ? a | kQuiet : a;
  const Number x = unpack(a);
  const Number y = unpack(b);
  const uint64_t larger = x.significand >> 1;  // room for a carry
  const uint64_t smaller = shift_right(y.significand >> 1, x.exponent - y.exponent);
  // A difference moves left by more than one bit only if the exponents are at most
  // one apart, and then no bit was lost.
  const uint64_t sum = sign_of(a ^ b) != 0 ? larger - smaller : larger + smaller;
  return round({sum, x.exponent + 1}, sign_of(a));
}

uint64_t __aeabi_dsub(uint64_t a, uint64_t b) { return __aeabi_dadd(a, b ^ kSign); }

/// b - a.
uint64_t __aeabi_drsub(uint64_t a, uint64_t b) { return __aeabi_dadd(a ^ kSign, b); }

uint64_t __aeabi_ul2d(uint64_t a) { return round({a, kBias + 63}, 0); }

uint64_t __aeabi_l2d(int64_t a) {
  const uint64_t bits = static_cast<uint64_t>(a);
  return round({a < 0 ? 0 - bits : bits, kBias + 63}, sign_of(bits));
}

uint64_t __aeabi_ui2d(uint32_t a) { return __aeabi_ul2d(a); }

uint64_t __aeabi_i2d(int32_t a) { return __aeabi_l2d(a); }

uint64_t __aeabi_f2d(uint32_t a) {
  const uint32_t sign = a & 0x80000000U;
  const int32_t exponent = static_cast<int32_t>(a >> 23) & 0xFF;
  const uint64_t fraction = static_cast<uint64_t>(a << 9) << 31;
  if (exponent == 0xFF) {
    const uint64_t nan = fraction != 0 ? fraction >> 11 | kQuiet : 0;
    return with_sign(kInfinity | nan, sign);
  }
  constexpr int32_t kRebias = kBias - 127;
  return exponent == 0 ? round({fraction, 1 + kRebias}, sign)
                       : round({fraction | kSign, exponent + kRebias}, sign);
}

#define ORCH_ALIAS(name, arguments, of) \
  uint64_t name arguments __attribute__((alias(#of)))
ORCH_ALIAS(__adddf3, (uint64_t a, uint64_t b), __aeabi_dadd);
ORCH_ALIAS(__subdf3, (uint64_t a, uint64_t b), __aeabi_dsub);
ORCH_ALIAS(__floatundidf, (uint64_t a), __aeabi_ul2d);
ORCH_ALIAS(__floatdidf, (int64_t a), __aeabi_l2d);
ORCH_ALIAS(__floatunsidf, (uint32_t a), __aeabi_ui2d);
ORCH_ALIAS(__floatsidf, (int32_t a), __aeabi_i2d);
ORCH_ALIAS(__extendsfdf2, (uint32_t a), __aeabi_f2d);
#undef ORCH_ALIAS

#endif

}  // extern "C"

#endif
