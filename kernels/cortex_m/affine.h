// Floats to quantized numbers and back, items that lie side by side, to the
// same bits as util/affine.h.
#pragma once

#include <stdint.h>
#include <string.h>

#include "isa.h"
#include "util/affine.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "affine_mve.h"
#endif

namespace orch::cortex_m {

/// Dtypes of quantized numbers.
inline constexpr DtypeSet kItems =
    dtype_set(ScalarType::Char, ScalarType::Short);

/// Gives `out` the sizes of `input`. Errors: those of `resize`; NotSupported
/// (the tensors are laid out differently).
inline Error prepare_items(const Tensor& input, Tensor& out) {
  ORCH_CHECK(same_layout(input, out), Error::NotSupported);
  return resize(out, input.sizes());
}

/// Largest zero point, of either sign, that `quantize_near` takes.
inline constexpr int32_t kMostNear = 1 << 21;

/// Quantizes to numbers of at most 16 bits. Limits and zero point are so near 0
/// that floats are limited before they are rounded: the sum with a float whose
/// steps are 1 rounds them, and its lower bits are the number.
template <typename T>
ORCH_HOT void quantize_near(const float* from, T* to, int32_t count,
                            const Affine& affine) {
  constexpr float kWhole = 0x1.8p23F;
  constexpr uint32_t kWholeBits = 0x4B400000U;
  const float inverse = 1.0F / affine.scale;
  const float low = static_cast<float>(affine.low - affine.zero_point);
  const float high = static_cast<float>(affine.high - affine.zero_point);
  const uint32_t zero = static_cast<uint32_t>(affine.zero_point) - kWholeBits;
  for (const T* const end = to + count; to != end; ++to) {
    float value = inverse * *from++;
    value = value > low ? value : low;  // so is what is no number
    value = value < high ? value : high;
    value += kWhole;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *to = static_cast<T>(bits + zero);
  }
}

/// Quantizes `count` items.
template <typename T>
void quantize_items(const float* from, T* to, int32_t count,
                    const Affine& affine) {
#if ORCH_ISA == ORCH_ISA_MVE
  if constexpr (sizeof(T) == 1) {
    if (suits_vectors(affine)) {
      quantize_vectors(from, to, count, affine);
      return;
    }
  }
#else
  if (affine.zero_point >= -kMostNear && affine.zero_point <= kMostNear) {
    quantize_near(from, to, count, affine);
    return;
  }
#endif
  quantize_row<float, T>({from, to, 1, 1, count}, affine);
}

/// Turns `count` items into floats.
template <typename T>
void dequantize_items(const T* from, float* to, int32_t count,
                      const Affine& affine) {
#if ORCH_ISA == ORCH_ISA_MVE
  if constexpr (sizeof(T) == 1) {
    if (suits_vectors(affine)) {
      dequantize_vectors(from, to, count, affine);
      return;
    }
  }
#endif
  dequantize_row<T, float>({from, to, 1, 1, count}, affine);
}

}  // namespace orch::cortex_m
