// Damages programs in a repeatable way and runs what comes of it.
//
//   mutate run FIRST_SEED LAST_SEED FILE...
//   mutate write FIRST_SEED LAST_SEED FILE...
//
// Each seed makes one program from one of the files. `run` prints how many were
// opened, loaded and run to their end; a seed that breaks something is printed,
// so that it can be run alone. `write` only writes them, to SEED.pte in the
// current folder.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/hostile_run.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define ORCH_TEST_ON_DEATH 1
#endif
#endif

/// A broken promise ends like an error that the sanitizer finds.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "handle_abort=1"; }

namespace orch::test {
namespace {

using Bytes = std::vector<uint8_t>;

/// SplitMix64: the same numbers everywhere, unlike the distributions of
/// <random>.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }

 private:
  uint64_t state_;
};

/// A number that is likely to be on the edge of what is checked.
uint32_t edge(Random& random) {
  static constexpr uint32_t kEdges[] = {
      0,          1,          2,          3,          4,          7,
      8,          16,         100,        0xFF,       0xFFFF,     0x10000,
      0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
  return kEdges[random.below(std::size(kEdges))];
}

void change(Bytes& bytes, Random& random) {
  const size_t at = random.below(bytes.size());
  // Offsets, indices, counts and sizes are words at multiples of 4.
  const size_t word = at / 4 * 4;
  const bool whole = word + 4 <= bytes.size();
  uint32_t value = 0;
  if (whole) std::memcpy(&value, &bytes[word], 4);
  switch (random.below(8)) {
    case 0:
      bytes[at] = static_cast<uint8_t>(random.next());
      return;
    case 1:
    case 2:
      bytes[at] ^= static_cast<uint8_t>(1U << random.below(8));
      return;
    case 3:
      value = edge(random);
      break;
    case 4:
      value += static_cast<uint32_t>(random.below(9)) - 4;
      break;
    case 5:  // another word of the program: an index or size that occurs
      if (whole) {
        std::memcpy(&value, &bytes[random.below(bytes.size() / 4) * 4], 4);
      }
      break;
    case 6:
      value = static_cast<uint32_t>(random.below(32));
      break;
    default:
      bytes[at] = static_cast<uint8_t>(random.below(16));
      return;
  }
  if (whole) std::memcpy(&bytes[word], &value, 4);
}

Bytes mutated(const std::vector<Bytes>& files, uint64_t seed) {
  Random random(seed);
  Bytes bytes = files[random.below(files.size())];
  if (bytes.empty()) return bytes;
  if (random.below(20) == 0) bytes.resize(random.below(bytes.size()) + 1);
  const size_t changes = 1 + random.below(4);
  for (size_t i = 0; i < changes; ++i) change(bytes, random);
  return bytes;
}

uint64_t current_seed = 0;

[[maybe_unused]] void tell_seed() {
  std::fprintf(stderr, "seed %" PRIu64 "\n", current_seed);
}

Bytes read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(2);
  }
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(2);
  }
}

int run(int count, char** arguments) {
  const std::string command = count > 1 ? arguments[1] : "";
  if (count < 5 || (command != "run" && command != "write")) {
    std::fprintf(stderr,
                 "usage: mutate run|write FIRST_SEED LAST_SEED FILE...\n");
    return 2;
  }
#ifdef ORCH_TEST_ON_DEATH
  __sanitizer_set_death_callback(tell_seed);
#endif
  std::vector<Bytes> files;
  for (int i = 4; i < count; ++i) files.push_back(read_file(arguments[i]));
  const uint64_t last = std::strtoull(arguments[3], nullptr, 10);
  HostileCounts sum;
  current_seed = std::strtoull(arguments[2], nullptr, 10);
  for (; current_seed <= last; ++current_seed) {
    const Bytes bytes = mutated(files, current_seed);
    if (command == "write") {
      write_file(std::to_string(current_seed) + ".pte", bytes);
      continue;
    }
    const HostileCounts counts = run_hostile({bytes.data(), bytes.size()});
    sum.opened += counts.opened;
    sum.loaded += counts.loaded;
    sum.completed += counts.completed;
  }
  if (command == "write") return 0;
  std::printf("opened %u loaded %u completed %u\n", sum.opened, sum.loaded,
              sum.completed);
  return 0;
}

}  // namespace
}  // namespace orch::test

int main(int count, char** arguments) {
  return orch::test::run(count, arguments);
}
