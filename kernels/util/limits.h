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
#include "util/within.h"

namespace orch {

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

}  // namespace orch
