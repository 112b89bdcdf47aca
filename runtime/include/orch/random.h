// The generator that kernels draw numbers from: rand, randn, native_dropout.
#pragma once

#include <stdint.h>

namespace orch::random {

/// The seed at start: a product gives the same numbers after every reset.
inline constexpr uint64_t kSeed = 0;

/// Begins the sequence of a seed. Not while a method runs in another thread or
/// on another core: all share one generator, and nothing locks it.
void seed(uint64_t value);

/// The next number, all of whose bits are random.
///
/// PCG32 (XSH RR 64/32) with the increment of its one-sequence variant, seeded
/// as its reference code does. Period 2^64; not for secrets. Source: M. E.
/// O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
/// Algorithms for Random Number Generation", https://www.pcg-random.org.
uint32_t next();

}  // namespace orch::random
