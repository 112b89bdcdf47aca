// Double arithmetic for cores without a double unit, in place of what the
// compilers' libraries round wrongly, or what takes them twice the code:
//
// - on Arm, libgcc's addition and subtraction lose a bit that decides about
//   rounding in some differences of numbers whose exponents are 33 apart, and
//   in some sums where they are 32 apart;
// - zig's compiler_rt cuts off quotients that are subnormal;
// - doubles become floats by 160 bytes of libgcc or 284 of compiler_rt, in most
//   programs of floats for the numbers among their arguments.
//
// Results here are those of a double unit: rounded to nearest, ties to even,
// with subnormals, infinities, NaN and signed zeros. Small code comes before
// speed; the linker drops what a firmware does not call.
//
// Sources: IEEE 754-2019; Arm, Run-time ABI for the Arm Architecture, and
// libgcc's manual (names of the functions; doubles in core registers whatever
// the float ABI, so that uint64_t stands for double here and uint32_t for
// float).

#include <stdint.h>

#if defined(__arm__) && (!defined(__ARM_FP) || (__ARM_FP & 8) == 0)
#define ORCH_DIVISION __aeabi_ddiv
#elif defined(__riscv) && defined(__clang__) && \
    (!defined(__riscv_flen) || __riscv_flen < 64)
#define ORCH_DIVISION __divdf3
#endif

#if defined(ORCH_DIVISION)

namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kQuiet = uint64_t{1} << 51;
constexpr int32_t kMaxExponent = 0x7FF;
constexpr uint64_t kInfinity = uint64_t{kMaxExponent} << 52;
constexpr int32_t kBias = 1023;

/// A finite magnitude, significand / 2^63 * 2^(exponent - kBias). The last bit
/// may be sticky: set for any number of lost bits below it.
struct Number {
  uint64_t significand;
  int32_t exponent;
};

/// Upper word of a double with nothing but its sign.
uint32_t sign_of(uint64_t bits) {
  return static_cast<uint32_t>(bits >> 32) & 0x80000000U;
}

uint64_t with_sign(uint64_t bits, uint32_t sign) {
  return bits | static_cast<uint64_t>(sign) << 32;
}

int32_t exponent_of(uint64_t bits) {
  return static_cast<int32_t>(bits >> 52) & kMaxExponent;
}

/// Of a finite double. Subnormals get the exponent of the smallest normals.
Number unpack(uint64_t bits) {
  const int32_t exponent = exponent_of(bits);
  const uint64_t fraction = bits << 11;
  return exponent == 0 ? Number{fraction & ~kSign, 1}
                       : Number{fraction | kSign, exponent};
}

/// x / 2^n for n >= 0, the last bit sticky.
uint64_t shift_right(uint64_t x, int32_t n) {
  if (n > 63) n = 63;  // far below rounding: all that matters is x != 0
  const uint64_t lost = x << (63 - n) << 1;
  return x >> n | (lost != 0 ? 1U : 0U);
}

/// The double nearest to a number that has bit 63 set or the exponent 1.
/// Trusts that the exponent is at least 1.
uint64_t pack(Number x, uint32_t sign) {
  if (x.exponent >= kMaxExponent) return with_sign(kInfinity, sign);
  // Sums, not ors: bit 63 counts the exponent up, and so does a carry out of
  // rounding, if need be to infinity.
  uint64_t bits =
      (x.significand >> 11) + (static_cast<uint64_t>(x.exponent - 1) << 52);
  const uint32_t rest = static_cast<uint32_t>(x.significand) & 0x7FFU;
  bits += (rest + 0x3FFU + (static_cast<uint32_t>(bits) & 1U)) >> 11;
  return with_sign(bits, sign);
}

#if defined(__arm__)

}  // namespace

// Under both names, as in libgcc; zig's own definitions are weak.
extern "C" {

uint32_t __aeabi_d2f(uint64_t a) {
  constexpr int32_t kRebias = kBias - 127;
  const uint32_t high = static_cast<uint32_t>(a >> 32);
  const uint32_t low = static_cast<uint32_t>(a);
  const uint32_t sign = high & 0x80000000U;
  const uint32_t top = (high << 3) | (low >> 29);
  uint32_t significand = (top & 0x7FFFFFU) | 0x800000U;
  uint32_t lost = low << 3;  // below the last bit
  const int32_t biased = static_cast<int32_t>(high >> 20) & kMaxExponent;
  int32_t exponent = biased - kRebias;
  if (exponent >= 0xFF) {
    const bool is_nan = (a & ~kSign) > kInfinity;
    return sign | 0x7F800000U | (is_nan ? significand | 0x400000U : 0);
  }
  if (exponent < 1) {
    // Subnormal, or far below: then all that matters is that bits were lost.
    const int32_t shift = exponent < -23 ? 25 : 1 - exponent;
    lost = significand << (32 - shift) | (lost != 0 ? 1U : 0U);
    significand >>= shift;
    exponent = 1;
  }
  // As in `pack`: a sum, where bit 23 counts the exponent up.
  const uint32_t bits =
      significand + (static_cast<uint32_t>(exponent - 1) << 23);
  const bool up = lost + (bits & 1U) > 0x80000000U;
  return sign | (bits + (up ? 1U : 0U));
}

uint32_t __truncdfsf2(uint64_t a) __attribute__((alias("__aeabi_d2f")));

}  // extern "C"

namespace {

#endif

#if defined(__clang__)

/// Of a finite double other than zero, with 53 significant bits: bit 52 is set.
/// Not inlined, since it is called twice.
__attribute__((noinline)) Number unpack_53_bits(uint64_t bits) {
  const Number x = unpack(bits);
  const int32_t shift = __builtin_clzll(x.significand);
  return {x.significand << shift >> 11, x.exponent - shift};
}

}  // namespace

extern "C" {

// zig's own definition is weak.
uint64_t ORCH_DIVISION(uint64_t a, uint64_t b) {
  const uint64_t x = a & ~kSign;
  const uint64_t y = b & ~kSign;
  if (x > kInfinity) return a | kQuiet;  // NaN
  if (y > kInfinity) return b | kQuiet;
  const bool is_infinite = x == kInfinity || y == 0;
  const bool is_zero = y == kInfinity || x == 0;
  if (is_infinite && is_zero) return kInfinity | kQuiet;
  const uint32_t sign = sign_of(a ^ b);
  if (is_infinite) return with_sign(kInfinity, sign);
  if (is_zero) return with_sign(0, sign);

  const Number dividend = unpack_53_bits(a);
  const Number divisor = unpack_53_bits(b);
  int32_t exponent = dividend.exponent - divisor.exponent + kBias;
  uint64_t remainder = dividend.significand;
  if (remainder < divisor.significand) {
    remainder <<= 1;
    --exponent;
  }
  // Long division: the first digit is 1, five more of 11 bits follow. A digit
  // is guessed from upper words, the divisor's plus one: never too large, and
  // too small by at most one.
  remainder -= divisor.significand;
  uint64_t quotient = 1;
  const uint32_t above = static_cast<uint32_t>(divisor.significand >> 32) + 1;
  while (quotient >> 55 == 0) {
    remainder <<= 11;
    uint32_t digit = static_cast<uint32_t>(remainder >> 32) / above;
    remainder -= digit * divisor.significand;
    if (remainder >= divisor.significand) {
      remainder -= divisor.significand;
      ++digit;
    }
    quotient = quotient << 11 | digit;
  }
  uint64_t significand = quotient << 8 | (remainder != 0 ? 1U : 0U);
  if (exponent < 1) {
    significand = shift_right(significand, 1 - exponent);
    exponent = 1;
  }
  return pack({significand, exponent}, sign);
}

}  // extern "C"

#else  // gcc

/// The double nearest to a number. Trusts that the exponent is at least 1.
uint64_t round(Number x, uint32_t sign) {
  if (x.significand == 0) return with_sign(0, sign);
  int32_t shift = __builtin_clzll(x.significand);
  if (shift >= x.exponent) shift = x.exponent - 1;  // stays subnormal
  return pack({x.significand << shift, x.exponent - shift}, sign);
}

}  // namespace

// All that libgcc has in the object of its addition, under both names: if one
// were missing, that object would be linked too and define the others twice.
extern "C" {

uint64_t __aeabi_dadd(uint64_t a, uint64_t b) {
  if (a << 1 < b << 1) {
    const uint64_t larger = b;
    b = a;
    a = larger;
  }
  const bool is_finite = exponent_of(a) != kMaxExponent;
  if ((a ^ b) == kSign) return is_finite ? 0 : a | kQuiet;  // x - x
  if (!is_finite) return a << 12 != 0 ? a | kQuiet : a;
  const Number x = unpack(a);
  const Number y = unpack(b);
  // One bit down: room for a carry.
  const uint64_t larger = x.significand >> 1;
  const uint64_t smaller =
      shift_right(y.significand >> 1, x.exponent - y.exponent);
  // Only if the exponents are at most one apart does a difference lose more
  // than one leading bit, and then `smaller` lost none: a sticky bit always
  // stays below the bit that decides about rounding.
  const uint64_t sum =
      sign_of(a ^ b) != 0 ? larger - smaller : larger + smaller;
  return round({sum, x.exponent + 1}, sign_of(a));
}

uint64_t __aeabi_dsub(uint64_t a, uint64_t b) {
  return __aeabi_dadd(a, b ^ kSign);
}

/// b - a.
uint64_t __aeabi_drsub(uint64_t a, uint64_t b) {
  return __aeabi_dadd(a ^ kSign, b);
}

uint64_t __aeabi_ul2d(uint64_t a) { return round({a, kBias + 63}, 0); }

uint64_t __aeabi_l2d(int64_t a) {
  const uint64_t bits = static_cast<uint64_t>(a);
  return round({a < 0 ? 0 - bits : bits, kBias + 63}, sign_of(bits));
}

uint64_t __aeabi_ui2d(uint32_t a) { return __aeabi_ul2d(a); }

uint64_t __aeabi_i2d(int32_t a) { return __aeabi_l2d(a); }

uint64_t __aeabi_f2d(uint32_t a) {
  constexpr int32_t kRebias = kBias - 127;
  const uint32_t sign = a & 0x80000000U;
  const int32_t exponent = static_cast<int32_t>(a >> 23) & 0xFF;
  if (exponent == 0) {
    return round({static_cast<uint64_t>(a << 9) << 31, 1 + kRebias}, sign);
  }
  // Infinity and NaN have the largest exponent of either format.
  const uint32_t added = exponent == 0xFF ? kMaxExponent - 0xFF : kRebias;
  const uint64_t bits = static_cast<uint64_t>(a ^ sign) << 29;
  return with_sign(bits + (static_cast<uint64_t>(added) << 52), sign);
}

#define ORCH_ALIAS(name, of, ...) \
  uint64_t name(__VA_ARGS__) __attribute__((alias(#of)))
ORCH_ALIAS(__adddf3, __aeabi_dadd, uint64_t, uint64_t);
ORCH_ALIAS(__subdf3, __aeabi_dsub, uint64_t, uint64_t);
ORCH_ALIAS(__floatundidf, __aeabi_ul2d, uint64_t);
ORCH_ALIAS(__floatdidf, __aeabi_l2d, int64_t);
ORCH_ALIAS(__floatunsidf, __aeabi_ui2d, uint32_t);
ORCH_ALIAS(__floatsidf, __aeabi_i2d, int32_t);
ORCH_ALIAS(__extendsfdf2, __aeabi_f2d, uint32_t);
#undef ORCH_ALIAS

}  // extern "C"

#endif

#endif
