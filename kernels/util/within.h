// Floats within limits, by their bits.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/kernel.h"
#include "util/prepared.h"

namespace orch {

inline constexpr uint32_t kInfinityBits = 0x7F800000;
inline constexpr uint32_t kSignBit = 0x80000000;

/// The limits of relu.
inline constexpr Limits kReluLimits = {0, int32_t{kInfinityBits}};

/// Stores `sum` as clamp and hardtanh keep it within limits: NaN stays, and so
/// does -0. Bits of positive numbers are in order; those of negative ones are
/// in order behind them, the larger the further below 0. So most values need
/// one comparison, and none needs an FPU or a call.
ORCH_ALWAYS_INLINE void store_within(const Limits& limits, const float& sum,
                                     float* to) {
  const auto low = static_cast<uint32_t>(limits.low);
  const auto high = static_cast<uint32_t>(limits.high);
  uint32_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (bits > high) {
    if (bits <= kInfinityBits) {
      bits = high;
    } else if (bits > (low | kSignBit) && bits <= (kInfinityBits | kSignBit)) {
      bits = low;
    }
  }
  memcpy(to, &bits, sizeof bits);
}

}  // namespace orch
