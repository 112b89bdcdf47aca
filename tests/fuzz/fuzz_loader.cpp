// libFuzzer target: any bytes as a program, loaded and run. Half of the changes
// are libFuzzer's own, half know what a flatbuffer looks like.
//
//   fuzz_loader CORPUS_FOLDER -max_total_time=600
#include <algorithm>
#include <cstring>

#include "support/hostile_run.h"
#include "support/mutations.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)orch::test::run_hostile({data, size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  orch::test::Random random(seed);
  if (size < 16 || random.below(2) == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  for (size_t left = 1 + random.below(4); left > 0; --left) {
    orch::test::change_structure(data, size, random);
  }
  return size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size,
                                            const uint8_t* two, size_t two_size,
                                            uint8_t* out, size_t max_size,
                                            unsigned seed) {
  const size_t size = std::min(one_size, max_size);
  if (size == 0) return 0;
  std::memcpy(out, one, size);
  orch::test::Random random(seed);
  orch::test::cross(out, size, two, two_size, 128, random);
  return size;
}
