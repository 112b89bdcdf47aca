// Numbers for random calls, the same on every target.
// Source: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8.
#pragma once

#include <stdint.h>

/// Not 0 once it was seeded.
inline uint32_t state;

inline uint32_t next() {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

/// From `low` to `high`, both included.
inline int32_t between(int32_t low, int32_t high) {
  return low +
         static_cast<int32_t>(next() % static_cast<uint32_t>(high - low + 1));
}

inline bool one_in(int32_t count) { return between(1, count) == 1; }
