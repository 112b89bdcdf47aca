// Loops of a fixed length that leave no trace: arrays that only they index stay
// in registers, even if the compiler is asked for small code.
#pragma once

#include "isa.h"

namespace orch::cortex_m {

/// A number known to the compiler.
template <int kNumber>
struct Index {
  static constexpr int value = kNumber;
  constexpr operator int() const { return kNumber; }
};

/// Calls fn(Index<0>), ... fn(Index<kCount - 1>).
template <int kCount, int kFirst = 0, typename Fn>
ORCH_ALWAYS_INLINE void unrolled(const Fn& fn) {
  if constexpr (kFirst < kCount) {
    fn(Index<kFirst>());
    unrolled<kCount, kFirst + 1>(fn);
  }
}

}  // namespace orch::cortex_m
