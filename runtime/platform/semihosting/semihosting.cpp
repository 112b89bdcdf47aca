// Semihosting: files, console and exit through the debugger or emulator.
// Sources: Arm, Semihosting for AArch32 and AArch64, release 2.0; RISC-V
// Semihosting 0.4.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../cycles.h"
#include "../host.h"
#include "orch/platform.h"

namespace orch {
namespace {

enum Operation : uint32_t {
  kOpen = 0x01,
  kClose = 0x02,
  kWrite0 = 0x04,
  kWrite = 0x05,
  kRead = 0x06,
  kGetCommandLine = 0x15,
  kExitExtended = 0x20,
};

constexpr uintptr_t kModeReadBinary = 1;
constexpr uintptr_t kModeWriteBinary = 5;
constexpr uintptr_t kApplicationExit = 0x20026;

// A field of an argument block is as wide as a register.
using Field = uintptr_t;

Field call(Operation operation, const void* block) {
#if defined(__riscv)
  register Field a0 __asm__("a0") = operation;
  register const void* a1 __asm__("a1") = block;
  // This sequence is the request: never compressed, and within one page.
  __asm__ volatile(
      ".option push\n"
      ".option norvc\n"
      ".balign 16\n"
      "slli x0, x0, 0x1f\n"
      "ebreak\n"
      "srai x0, x0, 7\n"
      ".option pop\n"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
#else
  register Field r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
#endif
}

Field address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

platform::File open(const char* path, Field mode) {
  const Field block[] = {address(path), mode, strlen(path)};
  return static_cast<platform::File>(call(kOpen, block));
}

}  // namespace

namespace platform {

File open_for_reading(const char* path) { return open(path, kModeReadBinary); }
File open_for_writing(const char* path) { return open(path, kModeWriteBinary); }

bool read(File file, void* data, size_t size) {
  const Field block[] = {static_cast<Field>(file), address(data), size};
  return call(kRead, block) == 0;  // bytes not read
}

bool write(File file, const void* data, size_t size) {
  const Field block[] = {static_cast<Field>(file), address(data), size};
  return call(kWrite, block) == 0;  // bytes not written
}

void close(File file) {
  const Field block[] = {static_cast<Field>(file)};
  (void)call(kClose, block);
}

void log(const char* text) {
  (void)call(kWrite0, text);
  (void)call(kWrite0, "\n");
}

}  // namespace platform

namespace host {

int run_application() {
  // Program name and two short relative paths.
  static char line[64];
  const Field block[] = {address(line), sizeof line};
  if (call(kGetCommandLine, block) != 0) return 2;
  const char* paths[2];
  int words = 0;
  for (char* at = line; *at != '\0'; ++at) {
    if (*at != ' ') continue;
    *at = '\0';
    if (words < 2) paths[words] = at + 1;
    ++words;
  }
  return words < 2 ? 2 : orch_application(paths[0], paths[1]);
}

void exit(int code) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  // A hard fault (HFSR) without a reason (CFSR) is a request that no debugger
  // took: the next one would lock the core up, and some chips start anew then.
  const auto* status = reinterpret_cast<const volatile uint32_t*>(0xE000ED28U);
  while (status[0] == 0 && status[1] != 0) {
  }
#endif
  const Field block[] = {kApplicationExit, static_cast<Field>(code)};
  for (;;) (void)call(kExitExtended, block);
}

}  // namespace host
}  // namespace orch
