// Vector table and reset of the Cortex-M boards.
// Source: Armv6-M, Armv7-M and Armv8-M Architecture Reference Manuals
// (exception model, system control block).

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

#ifndef ORCH_TRACE
/// As in executor.cpp.
#define ORCH_TRACE 0
#endif

extern "C" {
// From the linker script. Only their addresses mean something.
extern uint8_t orch_flash_begin[];
extern uint8_t orch_stack_base[];
extern uint8_t orch_stack_top[];
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

[[noreturn]] void orch_reset();
[[noreturn]] void orch_fault();
#if ORCH_TRACE
void orch_systick();  // in cycles.h
#endif
}

namespace {

using Vector = void (*)();
using Register = volatile uint32_t;

#if defined(__ARM_FP)
constexpr uintptr_t kCoprocessorAccess = 0xE000ED88U;  // CPACR
constexpr uint32_t kFullAccessCp10Cp11 = 0xFU << 20;
#endif
constexpr uintptr_t kVectorTable = 0xE000ED08U;  // VTOR; Cortex-M0 has none
// Configuration and control register: what the code was compiled for.
constexpr uintptr_t kConfiguration = 0xE000ED14U;  // CCR
constexpr uint32_t kSettings =
#if defined(__ARM_ARCH_8_1M_MAIN__)
    1U << 19 |  // low-overhead branches
#endif
#if !defined(__ARM_FEATURE_UNALIGNED)
    // Unaligned accesses fault. Where the architecture has none (Armv6-M,
    // Armv8-M Baseline) that is so, and cannot be set; other cores that run
    // such code then do what the one it is for would.
    1U << 3 |
#endif
    0U;

constexpr int kSystemVectors = 15;

#if ORCH_TRACE
constexpr Vector kSysTick = orch_systick;
#else
constexpr Vector kSysTick = orch_fault;
#endif

struct VectorTable {
  uint8_t* stack;
  Vector handlers[kSystemVectors];
};

/// Only system exceptions have entries. None but SysTick's, of products with
/// trace hooks, ever comes unless something failed.
__attribute__((section(".vectors"), used)) const VectorTable kVectors = {
    orch_stack_top,
    {orch_reset, orch_fault, orch_fault, orch_fault, orch_fault, orch_fault,
     orch_fault, orch_fault, orch_fault, orch_fault, orch_fault, orch_fault,
     orch_fault, orch_fault, kSysTick}};

size_t bytes_between(const uint8_t* begin, const uint8_t* end) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(end) -
                             reinterpret_cast<uintptr_t>(begin));
}

}  // namespace

// In the flash, wherever other code is.
extern "C" __attribute__((section(".text.orch_start"))) void orch_reset() {
#if ORCH_HAS_SETTINGS
  orch::apply(orch::start::kSettings);
#endif
#if ORCH_COPIES_CODE
  // No function can be called before. The compiler must not see a memcpy.
  const volatile uint32_t* from = orch_code_load;
  for (volatile uint32_t* to = orch_code_begin; to < orch_code_end;) {
    *to++ = *from++;
  }
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  // A boot loader that came here by a jump may have left it elsewhere. The
  // table is what the flash begins with: as a reference to kVectors, this would
  // look like a recursion to the computation of stacks.
  *reinterpret_cast<Register*>(kVectorTable) =
      reinterpret_cast<uintptr_t>(orch_flash_begin);
#if defined(__ARM_FP)
  // Before the first floating-point instruction.
  *reinterpret_cast<Register*>(kCoprocessorAccess) |= kFullAccessCp10Cp11;
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  if constexpr (kSettings != 0) {
    *reinterpret_cast<Register*>(kConfiguration) |= kSettings;
    __asm__ volatile("dsb\n isb" ::: "memory");
  }
#if __ARM_ARCH >= 8
  // A stack overflow becomes a fault instead of silent corruption.
  __asm__ volatile("msr msplim, %0" ::"r"(orch_stack_base));
#endif
  memcpy(orch_data_begin, orch_data_load,
         bytes_between(orch_data_begin, orch_data_end));
  memset(orch_bss_begin, 0, bytes_between(orch_bss_begin, orch_bss_end));
  orch::host::exit(orch::host::run_application());
}

extern "C" void orch_fault() {
  // No stack is used on the way: it may be what failed.
  orch::host::exit(orch::host::kFaultExitCode);
}
