// An application that gives the FPU one mode after another, and each time makes
// a method ready anew. Takes the place of runner.cpp; writes a word per mode:
// the status that it gets.
#include <stdint.h>

#include "orch/platform.h"
#include "product.h"

namespace {

constexpr uint32_t kModes[] = {MODES};

void set_mode(uint32_t mode) {
#if defined(__riscv)
  asm volatile("fsrm %0" : : "r"(mode));
#else
  // LTPSIZE, of MVE, is no mode: loops need it as it is.
  uint32_t before;
  asm volatile("vmrs %0, fpscr" : "=r"(before));
  mode |= before & 7U << 16;
  asm volatile("vmsr fpscr, %0" : : "r"(mode));
#endif
}

}  // namespace

int orch_application(const char*, const char* response_path) {
  const orch::platform::File file =
      orch::platform::open_for_writing(response_path);
  for (const uint32_t mode : kModes) {
    set_mode(mode);
    const uint32_t anew = ANEW;
    // Of what was refused it is refused again, else ready.
    if (product_model_forward_prepare() != anew) return 1;
    if (!orch::platform::write(file, &anew, sizeof anew)) return 1;
  }
  orch::platform::close(file);
  return 0;
}
