// Reset of the RISC-V boards, in machine mode.
// Sources: RISC-V Instruction Set Manual, volume II: Privileged Architecture
// (mstatus, mtvec, physical memory protection).

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../host.h"

#ifndef ORCH_COPIES_CODE
/// Whether code runs in a RAM, and lies in the flash before.
#define ORCH_COPIES_CODE 0
#endif
#ifndef ORCH_HAS_SETTINGS
/// Whether the board has registers that are written before anything else: those
/// of orch_start.h, which the build includes.
#define ORCH_HAS_SETTINGS 0
#endif

extern "C" {
// From the linker script. Only their addresses mean something.
extern uint8_t orch_flash_begin[];
extern uint8_t orch_flash_end[];
extern uint8_t orch_data_load[];
extern uint8_t orch_data_begin[];
extern uint8_t orch_data_end[];
extern uint8_t orch_bss_begin[];
extern uint8_t orch_bss_end[];
#if ORCH_COPIES_CODE
extern uint32_t orch_code_load[];
extern uint32_t orch_code_begin[];
extern uint32_t orch_code_end[];
#endif

[[noreturn]] void orch_start();
[[noreturn]] void orch_stop();
void orch_fault();
}

// The core begins at the first of these, which is the first address of the
// flash. Nothing relies on the global pointer, as the linker script gives it no
// value. A fault begins with a new stack: the old one may be what failed.
// mtvec takes multiples of four bytes.
__asm__(
    ".section .vectors, \"ax\"\n"
    ".globl orch_reset\n"
    ".type orch_reset, %function\n"
    "orch_reset:\n"
    "  la sp, orch_stack_top\n"
    "  tail orch_start\n"
    ".size orch_reset, . - orch_reset\n"
    ".balign 4\n"
    ".type orch_fault, %function\n"
    "orch_fault:\n"
    "  la sp, orch_stack_top\n"
    "  tail orch_stop\n"
    ".size orch_fault, . - orch_fault\n"
    ".text\n");

// Every core with machine mode has these instructions, but assemblers take them
// only where the extension is named.
#define ORCH_CONTROL(instruction) \
  ".option push\n.option arch, +zicsr\n" instruction "\n.option pop\n"

namespace {

size_t bytes_between(const uint8_t* begin, const uint8_t* end) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(end) -
                             reinterpret_cast<uintptr_t>(begin));
}

/// Makes stores to the flash fault, as an emulator's flash is RAM: also those
/// of a stack that overflows, where the RAM lies behind the flash.
void protect_flash() {
  constexpr uintptr_t kLocked = 0x80U, kUpTo = 0x08U, kExecute = 0x04U,
                      kRead = 0x01U;
  constexpr uintptr_t kSecond = 8;  // bits per entry
  const uintptr_t begin = reinterpret_cast<uintptr_t>(orch_flash_begin) >> 2;
  const uintptr_t end = reinterpret_cast<uintptr_t>(orch_flash_end) >> 2;
  constexpr uintptr_t kEntries = (kLocked | kUpTo | kExecute | kRead)
                                 << kSecond;
  __asm__ volatile(ORCH_CONTROL("csrw pmpaddr0, %0")::"r"(begin));
  __asm__ volatile(ORCH_CONTROL("csrw pmpaddr1, %0")::"r"(end));
  __asm__ volatile(ORCH_CONTROL("csrw pmpcfg0, %0")::"r"(kEntries));
}

}  // namespace

// In the flash, wherever other code is.
extern "C" __attribute__((section(".text.orch_start"))) void orch_start() {
#if ORCH_HAS_SETTINGS
  orch::apply(orch::start::kSettings);
#endif
#if ORCH_COPIES_CODE
  // No function can be called before. The compiler must not see a memcpy.
  const volatile uint32_t* from = orch_code_load;
  for (volatile uint32_t* to = orch_code_begin; to < orch_code_end;) {
    *to++ = *from++;
  }
  __asm__ volatile(".word 0x0000100F" ::: "memory");  // fence.i
#endif
  __asm__ volatile(ORCH_CONTROL("csrw mtvec, %0")::"r"(orch_fault));
#if defined(__riscv_flen)
  // Before the first floating-point instruction: the state of the registers
  // becomes "initial", rounding is to nearest.
  constexpr uintptr_t kFloatInitial = 1U << 13;
  __asm__ volatile(ORCH_CONTROL("csrs mstatus, %0")::"r"(kFloatInitial));
  __asm__ volatile(ORCH_CONTROL("csrw fcsr, zero"));
#endif
  protect_flash();
  memcpy(orch_data_begin, orch_data_load,
         bytes_between(orch_data_begin, orch_data_end));
  memset(orch_bss_begin, 0, bytes_between(orch_bss_begin, orch_bss_end));
  orch::host::exit(orch::host::run_application());
}

extern "C" void orch_stop() { orch::host::exit(orch::host::kFaultExitCode); }
