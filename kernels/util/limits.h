// Limits of the sums that a call of floats computes: the relu, clamp or
// hardtanh after it, as part of it.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/kernel.h"
#include "util/clamp.h"
#include "util/isa.h"
#include "util/prepared.h"
#include "util/types.h"

namespace orch {

inline constexpr uint32_t kInfinityBits = 0x7F800000;
inline constexpr uint32_t kSignBit = 0x80000000;

/// Those of relu.
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

/// What relu makes of a sum.
ORCH_ALWAYS_INLINE float relu_of(float sum) {
#if ORCH_FLOAT_REGISTERS
  return is_negative(sum) ? 0 : sum;
#else
  // Less one, -0 is the largest integer, and only -NaN is a negative one that
  // is larger than that of minus infinity.
  uint32_t bits;
  memcpy(&bits, &sum, sizeof bits);
  constexpr auto kMost = static_cast<int32_t>(kInfinityBits | kSignBit);
  return static_cast<int32_t>(bits - 1) < kMost ? 0 : sum;
#endif
}

/// Calls a kernel whose limits, numbers, follow its arguments, the last of
/// which is the output: for calls that passes made and did not prepare.
inline Error call_limited(KernelFn kernel, const Args& args) {
  ORCH_TRY(kernel(args));
  const int last = static_cast<int>(args.count()) - 1;
  const auto low = static_cast<float>(args.number(last - 1));
  const auto high = static_cast<float>(args.number(last));
  Tensor& out = args.tensor(last - 2);
  float* const items = out.mutable_data<float>();
  const int32_t count = static_cast<int32_t>(out.numel());
  for (int32_t i = 0; i < count; ++i) {
    items[i] = at_most(at_least(items[i], low), high);
  }
  return Error::Ok;
}

#if ORCH_FLOAT_VECTORS
/// Sums within limits, for vectors.
inline float limited_item(const VectorFinish& finish, int32_t, float sum) {
  store_within({finish.p0, finish.p1}, sum, &sum);
  return sum;
}

inline constexpr VectorFinish kVectorRelu = {kReluLimits.low, kReluLimits.high,
                                             relu_lanes, limited_item};
#endif

}  // namespace orch
