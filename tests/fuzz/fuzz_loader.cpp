// libFuzzer target: any bytes as a program, loaded and run.
//
//   fuzz_loader CORPUS_FOLDER -max_total_time=600
#include "support/hostile_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)orch::test::run_hostile({data, size});
  return 0;
}
