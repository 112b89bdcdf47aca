// Alone, so that products that draw no numbers have no such state.
#include "orch/random.h"

namespace orch::random {
namespace {

constexpr uint64_t kIncrement = 1442695040888963407U;

constexpr uint64_t step(uint64_t state) {
  return state * 6364136223846793005U + kIncrement;
}

constexpr uint64_t seeded(uint64_t value) { return step(kIncrement + value); }

uint64_t state = seeded(kSeed);

}  // namespace

void seed(uint64_t value) { state = seeded(value); }

uint32_t next() {
  const uint64_t old = state;
  state = step(old);
  const uint32_t mixed = static_cast<uint32_t>((old >> 18 ^ old) >> 27);
  const uint32_t by = static_cast<uint32_t>(old >> 59);
  return mixed >> by | mixed << (-by & 31U);
}

}  // namespace orch::random
