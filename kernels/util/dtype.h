// From a dtype at run time to a C++ type at compile time.
#pragma once

#include "orch/error.h"
#include "orch/scalar_type.h"
#include "util/complex.h"
#include "util/types.h"

/// Calls X(name, type) for every dtype a tensor can have.
#define ORCH_FOR_EACH_DTYPE(X)      \
  X(Byte, uint8_t)                  \
  X(Char, int8_t)                   \
  X(Short, int16_t)                 \
  X(Int, int32_t)                   \
  X(Long, int64_t)                  \
  X(Half, Half)                     \
  X(Float, float)                   \
  X(Double, double)                 \
  X(ComplexHalf, Complex<Half>)     \
  X(ComplexFloat, Complex<float>)   \
  X(ComplexDouble, Complex<double>) \
  X(Bool, bool)                     \
  X(BFloat16, BFloat16)             \
  X(UInt16, uint16_t)               \
  X(UInt32, uint32_t)               \
  X(UInt64, uint64_t)

namespace orch {

/// The first dtype of a set.
constexpr ScalarType first_of(DtypeSet set) {
  unsigned code = 0;
  while (!set.has(static_cast<ScalarType>(code))) ++code;
  return static_cast<ScalarType>(code);
}

/// A dtype, which is known if the set has no other.
template <uint32_t kBits>
constexpr ScalarType one_of(ScalarType dtype) {
  constexpr DtypeSet kSet{kBits};
  if constexpr (kProvedCalls && kBits != 0 && kSet.single()) {
    return first_of(kSet);
  } else {
    return dtype;
  }
}

/// Calls `fn(Type<T>{})` for the C++ type of `dtype` and returns its error.
///
/// kBits is a `DtypeSet::bits`. A dtype outside of it is never instantiated and
/// costs no flash. Errors: DtypeNotSelected, and those of `fn`.
template <uint32_t kBits, typename Fn>
Error switch_dtype(ScalarType dtype, Fn&& fn) {
  switch (one_of<kBits>(dtype)) {
#define ORCH_CASE(name, T)                                 \
  case ScalarType::name:                                   \
    if constexpr (DtypeSet{kBits}.has(ScalarType::name)) { \
      return fn(Type<T>{});                                \
    }                                                      \
    break;
    ORCH_FOR_EACH_DTYPE(ORCH_CASE)
#undef ORCH_CASE
  }
  return Error::DtypeNotSelected;
}

/// Whether a dtype of this set has items of so many bytes.
constexpr bool has_item_bytes(DtypeSet set, size_t bytes) {
  for (unsigned code = 0; code < 32; ++code) {
    const ScalarType dtype = static_cast<ScalarType>(code);
    if (set.has(dtype) && item_bytes(dtype) == bytes) return true;
  }
  return false;
}

/// An item of 16 bytes.
struct Words {
  uint64_t word[2];
};

/// As wide as the widest item that a tensor of this build can have.
using WidestItem =
    typename Choose<ORCH_COMPLEX_DOUBLE != 0, Words, uint64_t>::type;

/// Like switch_dtype, for operators that only move items: one instance for all
/// dtypes of one size, called with an unsigned integer type of that size, or
/// Words.
template <uint32_t kBits, typename Fn>
Error switch_item(ScalarType dtype, Fn&& fn) {
  constexpr DtypeSet kSet{kBits};
  ORCH_CHECK(kSet.has(dtype), Error::DtypeNotSelected);
  const size_t bytes = item_bytes(one_of<kBits>(dtype));
  if constexpr (has_item_bytes(kSet, 1)) {
    if (bytes == 1) return fn(Type<uint8_t>{});
  }
  if constexpr (has_item_bytes(kSet, 2)) {
    if (bytes == 2) return fn(Type<uint16_t>{});
  }
  if constexpr (has_item_bytes(kSet, 4)) {
    if (bytes == 4) return fn(Type<uint32_t>{});
  }
  if constexpr (has_item_bytes(kSet, 8)) {
    if (bytes == 8) return fn(Type<uint64_t>{});
  }
  if constexpr (has_item_bytes(kSet, 16)) {
    if (bytes == 16) return fn(Type<Words>{});
  }
  return Error::DtypeNotSelected;
}

/// Item `index` of an array of `dtype` items, converted to T.
///
/// For calls that mix dtypes: slower than typed access, but one instance serves
/// every source dtype of the set. A dtype outside of it reads as zero; check
/// it.
template <typename T, uint32_t kBits>
T load_as(ScalarType dtype, const void* items, int32_t index) {
  switch (dtype) {
#define ORCH_CASE(name, U)                                    \
  case ScalarType::name:                                      \
    if constexpr (DtypeSet{kBits}.has(ScalarType::name)) {    \
      return convert<T>(static_cast<const U*>(items)[index]); \
    }                                                         \
    break;
    ORCH_FOR_EACH_DTYPE(ORCH_CASE)
#undef ORCH_CASE
  }
  return convert<T>(0);
}

/// Writes `value`, converted to `dtype`, to item `index`; the other way round.
template <uint32_t kBits, typename T>
void store_as(ScalarType dtype, void* items, int32_t index, T value) {
  switch (dtype) {
#define ORCH_CASE(name, U)                                 \
  case ScalarType::name:                                   \
    if constexpr (DtypeSet{kBits}.has(ScalarType::name)) { \
      static_cast<U*>(items)[index] = convert<U>(value);   \
    }                                                      \
    break;
    ORCH_FOR_EACH_DTYPE(ORCH_CASE)
#undef ORCH_CASE
  }
}

}  // namespace orch
