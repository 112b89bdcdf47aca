// Element types: codes of the .pte format, their C++ types and sizes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/complex.h"
#include "orch/half.h"

/// 1 in builds that have tensors of ComplexDouble, the one dtype of 16 bytes.
#ifndef ORCH_COMPLEX_DOUBLE
#define ORCH_COMPLEX_DOUBLE 0
#endif

// Programs, constants and tensors are read as they lie in memory.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "Orchestrator runs on little-endian machines only");

namespace orch {

/// Element type of a tensor. Source: ExecuTorch schema/scalar_type.fbs (ET12).
enum class ScalarType : uint8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  BFloat16 = 15,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

/// Sizes of elements in bytes, by code: one table for all that ask.
inline constexpr uint8_t kItemBytes[] = {
    1, 1, 2,
    4, 8, 2,
    4, 8,                                // Byte ... Double
    4, 8, ORCH_COMPLEX_DOUBLE ? 16 : 0,  // ComplexHalf ... ComplexDouble
    1, 0, 0,
    0, 2,  // Bool, BFloat16
    0, 0, 0,
    0, 0, 0,
    0, 0, 0,
    0, 0, 2,  // UInt16
    4, 8,     // UInt32, UInt64
};

/// Size of one element in bytes; 0 for a type this runtime does not know.
constexpr size_t item_bytes(ScalarType dtype) {
  const size_t code = static_cast<size_t>(dtype);
  return code < sizeof kItemBytes ? kItemBytes[code] : 0;
}

/// What addresses of its tensors are a multiple of, in bytes.
constexpr size_t alignment(ScalarType dtype) {
  const size_t bytes = item_bytes(dtype);
#if ORCH_COMPLEX_DOUBLE
  return bytes < 8 ? bytes : 8;
#else
  return bytes;
#endif
}

/// A set of dtypes as a bit mask: bit n stands for the dtype with code n.
struct DtypeSet {
  uint32_t bits = 0;

  constexpr bool has(ScalarType dtype) const {
    return static_cast<unsigned>(dtype) < 32 &&
           ((bits >> static_cast<unsigned>(dtype)) & 1U) != 0;
  }
  /// At most one dtype: code that mixes dtypes is never needed.
  constexpr bool single() const { return (bits & (bits - 1)) == 0; }
};

template <typename... T>
constexpr DtypeSet dtype_set(T... dtypes) {
  return DtypeSet{((uint32_t{1} << static_cast<unsigned>(dtypes)) | ... | 0U)};
}

constexpr DtypeSet operator|(DtypeSet a, DtypeSet b) {
  return {a.bits | b.bits};
}
constexpr DtypeSet operator&(DtypeSet a, DtypeSet b) {
  return {a.bits & b.bits};
}

inline constexpr DtypeSet kIntegral =
    dtype_set(ScalarType::Byte, ScalarType::Char, ScalarType::Short,
              ScalarType::Int, ScalarType::Long);
inline constexpr DtypeSet kFloating =
    dtype_set(ScalarType::Half, ScalarType::BFloat16, ScalarType::Float,
              ScalarType::Double);
inline constexpr DtypeSet kReal = kIntegral | kFloating;
inline constexpr DtypeSet kBool = dtype_set(ScalarType::Bool);
inline constexpr DtypeSet kComplex =
    dtype_set(ScalarType::ComplexHalf, ScalarType::ComplexFloat,
              ScalarType::ComplexDouble);

/// The dtype of a C++ element type.
template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<uint8_t> {
  static constexpr ScalarType value = ScalarType::Byte;
};
template <>
struct DtypeOf<int8_t> {
  static constexpr ScalarType value = ScalarType::Char;
};
template <>
struct DtypeOf<int16_t> {
  static constexpr ScalarType value = ScalarType::Short;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr ScalarType value = ScalarType::Int;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr ScalarType value = ScalarType::Long;
};
template <>
struct DtypeOf<Half> {
  static constexpr ScalarType value = ScalarType::Half;
};
template <>
struct DtypeOf<float> {
  static constexpr ScalarType value = ScalarType::Float;
};
template <>
struct DtypeOf<double> {
  static constexpr ScalarType value = ScalarType::Double;
};
template <>
struct DtypeOf<Complex<Half>> {
  static constexpr ScalarType value = ScalarType::ComplexHalf;
};
template <>
struct DtypeOf<Complex<float>> {
  static constexpr ScalarType value = ScalarType::ComplexFloat;
};
template <>
struct DtypeOf<Complex<double>> {
  static constexpr ScalarType value = ScalarType::ComplexDouble;
};
template <>
struct DtypeOf<bool> {
  static constexpr ScalarType value = ScalarType::Bool;
};
template <>
struct DtypeOf<BFloat16> {
  static constexpr ScalarType value = ScalarType::BFloat16;
};
template <>
struct DtypeOf<uint16_t> {
  static constexpr ScalarType value = ScalarType::UInt16;
};
template <>
struct DtypeOf<uint32_t> {
  static constexpr ScalarType value = ScalarType::UInt32;
};
template <>
struct DtypeOf<uint64_t> {
  static constexpr ScalarType value = ScalarType::UInt64;
};

}  // namespace orch
