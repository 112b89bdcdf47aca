// 16-bit floating-point storage types. Arithmetic is done in float.
#pragma once

#include <stdint.h>
#include <string.h>

namespace orch {

/// Bits of a float, and back. No instruction on any target.
inline uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// An FPU of single precision converts IEEE halves, too; that of a processor for
// Linux may not. Only the bits of what is no number may be others.
#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && \
    (__ARM_ARCH_PROFILE == 'M' || (__ARM_FP & 2) != 0)
#define ORCH_HALF_INSTRUCTIONS 1
#else
#define ORCH_HALF_INSTRUCTIONS 0
#endif

// Assembly that makes the halves in the lower parts of register q`number` four
// floats, and back. Written as numbers: GNU as up to 2.40 encodes other
// registers than those it is given, for all but q0.
#define ORCH_WIDEN_HALVES(number) ".inst.w 0xFE3F0E01 + " number " * 0x2002\n"
#define ORCH_NARROW_HALVES(number) ".inst.w 0xEE3F0E01 + " number " * 0x2002\n"

/// bfloat16: the upper half of a float, rounded to nearest even.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t b = float_bits(value);
    if ((b & 0x7FFFFFFFU) > 0x7F800000U) {
      bits = 0x7FC0U;  // any NaN
    } else {
      bits = static_cast<uint16_t>((b + 0x7FFFU + ((b >> 16) & 1U)) >> 16);
    }
  }
  explicit operator float() const {
    return float_from_bits(static_cast<uint32_t>(bits) << 16);
  }
};

/// IEEE 754 binary16, rounded to nearest even.
struct Half {
  uint16_t bits;

  Half() = default;
  explicit Half(float value) {
#if ORCH_HALF_INSTRUCTIONS
    asm("vcvtb.f16.f32 %0, %1" : "=t"(value) : "t"(value));
    bits = static_cast<uint16_t>(float_bits(value));
#else
    const uint32_t b = float_bits(value);
    const uint32_t sign = (b >> 16) & 0x8000U;
    const uint32_t magnitude = b & 0x7FFFFFFFU;
    uint32_t half;
    if (magnitude >= 0x47800000U) {  // 65536 and more, infinity, NaN
      half = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
    } else if (magnitude < 0x38800000U) {  // subnormal or zero: add 0.5 shifted
      half = float_bits(float_from_bits(magnitude) + 0.5F) - 0x3F000000U;
    } else {
      half =
          (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
    }
    bits = static_cast<uint16_t>(sign | half);
#endif
  }
  explicit operator float() const {
#if ORCH_HALF_INSTRUCTIONS
    float value = float_from_bits(bits);
    asm("vcvtb.f32.f16 %0, %1" : "=t"(value) : "t"(value));
    return value;
#else
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
    const uint32_t rest = bits & 0x7FFFU;
    uint32_t value;
    if (rest >= 0x7C00U) {  // infinity, NaN
      value = 0x7F800000U | (rest & 0x3FFU) << 13;
    } else if (rest >= 0x400U) {
      value = (rest << 13) + 0x38000000U;
    } else {  // subnormal: an exact integer times 2^-24
      value = float_bits(static_cast<float>(rest) * 0x1p-24F);
    }
    return float_from_bits(sign | value);
#endif
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2, "storage types");

}  // namespace orch
