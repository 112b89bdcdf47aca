// Platform of Linux builds without a C library: system calls and a start-up
// stub. Source: Linux arch/*/entry/syscalls; calling conventions of syscall(2).

#include "orch/platform.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace orch::platform {
namespace {

#if defined(__x86_64__)
constexpr long kRead = 0, kWrite = 1, kOpenat = 257, kClose = 3, kExit = 60,
               kClockGettime = 228;

long system_call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
constexpr long kRead = 63, kWrite = 64, kOpenat = 56, kClose = 57, kExit = 93,
               kClockGettime = 113;

long system_call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
                   : "memory");
  return x0;
}
#elif defined(__arm__)
constexpr long kRead = 3, kWrite = 4, kOpenat = 322, kClose = 6, kExit = 1,
               kClockGettime = 263;

long system_call(long number, long a, long b, long c, long d) {
  register long r7 __asm__("r7") = number;
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  register long r3 __asm__("r3") = d;
  __asm__ volatile("svc #0"
                   : "+r"(r0)
                   : "r"(r7), "r"(r1), "r"(r2), "r"(r3)
                   : "memory");
  return r0;
}
#else
#error "this processor has no Linux platform yet"
#endif

constexpr long kCurrentFolder = -100;  // AT_FDCWD
constexpr long kReadOnly = 0;
constexpr long kWriteCreateTruncate = 01 | 0100 | 01000;
constexpr long kMode = 0644;
constexpr long kMonotonicClock = 1;  // CLOCK_MONOTONIC

File open(const char* path, long flags) {
  return static_cast<File>(system_call(
      kOpenat, kCurrentFolder, reinterpret_cast<long>(path), flags, kMode));
}

bool transfer(long number, File file, uintptr_t at, size_t size) {
  while (size != 0) {
    const long done = system_call(number, file, static_cast<long>(at),
                                  static_cast<long>(size), 0);
    if (done <= 0) return false;
    at += static_cast<size_t>(done);
    size -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace

File open_for_reading(const char* path) { return open(path, kReadOnly); }
File open_for_writing(const char* path) {
  return open(path, kWriteCreateTruncate);
}

bool read(File file, void* data, size_t size) {
  return transfer(kRead, file, reinterpret_cast<uintptr_t>(data), size);
}

bool write(File file, const void* data, size_t size) {
  return transfer(kWrite, file, reinterpret_cast<uintptr_t>(data), size);
}

void close(File file) { (void)system_call(kClose, file, 0, 0, 0); }

void log(const char* text) {
  constexpr File kStandardError = 2;
  (void)write(kStandardError, text, strlen(text));
  (void)write(kStandardError, "\n", 1);
}

uint64_t ticks() {
  struct {
    long seconds;
    long nanoseconds;
  } now = {};
  (void)system_call(kClockGettime, kMonotonicClock,
                    reinterpret_cast<long>(&now), 0, 0);
  return static_cast<uint64_t>(now.seconds) * 1000000000U +
         static_cast<uint64_t>(now.nanoseconds);
}

}  // namespace orch::platform

/// Called by _start with the initial stack: argc, argv[0], ...
extern "C" [[noreturn]] void orch_linux_start(const long* stack);
extern "C" [[noreturn]] void orch_linux_start(const long* stack) {
  using namespace orch::platform;
  int code = 2;
  if (stack[0] == 3) {
    code = orch_application(reinterpret_cast<const char*>(stack[2]),
                            reinterpret_cast<const char*>(stack[3]));
  } else {
    log("usage: firmware.elf REQUEST RESPONSE");
  }
  for (;;) (void)system_call(kExit, code, 0, 0, 0);
}

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call orch_linux_start\n");
#elif defined(__arm__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov fp, #0\n"
    "  mov lr, #0\n"
    "  mov r0, sp\n"
    "  bic sp, sp, #7\n"
    "  bl orch_linux_start\n");
#else
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  bl orch_linux_start\n");
#endif
