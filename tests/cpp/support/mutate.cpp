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
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/hostile_run.h"
#include "support/mutations.h"

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

Bytes mutated(const std::vector<Bytes>& files, uint64_t seed) {
  Random random(seed);
  Bytes bytes = files[random.below(files.size())];
  if (bytes.empty()) return bytes;
  if (random.below(20) == 0) bytes.resize(random.below(bytes.size()) + 1);
  const size_t changes = 1 + random.below(4);
  for (size_t i = 0; i < changes; ++i) {
    change(bytes.data(), bytes.size(), random);
  }
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
