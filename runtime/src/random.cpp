// Alone, so that products that draw no numbers have no such state.
#include "orch/random.h"

namespace orch {
namespace {

constexpr uint64_t kIncrement = 1442695040888963407U;

constexpr uint64_t step(uint64_t state) {
  return state * 6364136223846793005U + kIncrement;
}

constexpr uint64_t seeded(uint64_t seed) { return step(kIncrement + seed); }

uint64_t state = seeded(ORCH_RANDOM_SEED);

}  // namespace
}  // namespace orch

void orch_random_seed(uint64_t seed) { orch::state = orch::seeded(seed); }

uint32_t orch_random_next() {
  const uint64_t old = orch::state;
  orch::state = orch::step(old);
  const uint32_t mixed = static_cast<uint32_t>((old >> 18 ^ old) >> 27);
  const uint32_t by = static_cast<uint32_t>(old >> 59);
  return mixed >> by | mixed << (-by & 31U);
}
