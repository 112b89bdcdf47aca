// Division of floats for cores without an FPU, in place of what zig's
// compiler_rt rounds wrongly: it cuts off quotients that are subnormal.
//
// The result is that of an FPU: rounded to nearest, ties to even, with
// subnormals, infinities, NaN and signed zeros. Cores without an FPU may have
// no division of integers either, so that quotients are found bit by bit.
//
// Sources: IEEE 754-2019; Arm, Run-time ABI for the Arm Architecture, and
// libgcc's manual (names of the functions; without an FPU floats are passed in
// core registers, so that uint32_t stands for float here).

#include <stdint.h>

#if defined(__clang__) && defined(__arm__) && !defined(__ARM_FP)
#define ORCH_DIVISION __aeabi_fdiv
#elif defined(__clang__) && defined(__riscv) && !defined(__riscv_flen)
#define ORCH_DIVISION __divsf3
#endif

#if defined(ORCH_DIVISION)

namespace {

constexpr uint32_t kSign = 0x80000000U;
constexpr uint32_t kQuiet = 1U << 22;
constexpr uint32_t kOne = 1U << 23;
constexpr uint32_t kInfinity = 0xFFU << 23;
constexpr int32_t kBias = 127;

/// A finite magnitude other than zero: significand / 2^23 * 2^(exponent -
/// kBias), with bit 23 the highest that is set.
struct Number {
  uint32_t significand;
  int32_t exponent;
};

/// Not inlined, since it is called twice.
__attribute__((noinline)) Number unpack(uint32_t magnitude) {
  if (magnitude >= kOne) {
    return {(magnitude & (kOne - 1)) | kOne,
            static_cast<int32_t>(magnitude >> 23)};
  }
  int32_t exponent = 1;
  for (; magnitude < kOne; --exponent) magnitude <<= 1;
  return {magnitude, exponent};
}

}  // namespace

// zig's own definition is weak.
extern "C" uint32_t ORCH_DIVISION(uint32_t a, uint32_t b) {
  const uint32_t x = a & ~kSign;
  const uint32_t y = b & ~kSign;
  if (x > kInfinity) return a | kQuiet;  // NaN
  if (y > kInfinity) return b | kQuiet;
  const bool is_infinite = x == kInfinity || y == 0;
  const bool is_zero = y == kInfinity || x == 0;
  if (is_infinite && is_zero) return kInfinity | kQuiet;
  const uint32_t sign = (a ^ b) & kSign;
  if (is_infinite) return sign | kInfinity;
  if (is_zero) return sign;

  const Number dividend = unpack(x);
  const Number divisor = unpack(y);
  int32_t exponent = dividend.exponent - divisor.exponent + kBias;
  uint32_t remainder = dividend.significand;
  if (remainder < divisor.significand) {
    remainder <<= 1;
    --exponent;
  }
  // The first bit is 1; one more than the format holds, and a sticky bit.
  uint32_t quotient = 0;
  while (quotient < kOne << 1) {
    quotient <<= 1;
    if (remainder >= divisor.significand) {
      remainder -= divisor.significand;
      quotient |= 1;
    }
    remainder <<= 1;
  }
  quotient = quotient << 1 | (remainder != 0 ? 1U : 0U);
  if (exponent < 1) {
    // Subnormal; beyond 31 bits nothing but the sticky bit is left.
    const int32_t shift = exponent < -30 ? 31 : 1 - exponent;
    const uint32_t lost = quotient << (32 - shift);
    quotient = quotient >> shift | (lost != 0 ? 1U : 0U);
    exponent = 1;
  }
  if (exponent >= 0xFF) return sign | kInfinity;
  // Sums, not ors: bit 23 counts the exponent up, and so does a carry out of
  // rounding, if need be to infinity.
  uint32_t bits = (quotient >> 2) + (static_cast<uint32_t>(exponent - 1) << 23);
  bits += ((quotient & 3U) + 1U + (bits & 1U)) >> 2;
  return sign | bits;
}

#endif
