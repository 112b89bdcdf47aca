// Cycles of the core, for products with trace hooks: `platform::ticks`, for one
// source of a firmware.
// Sources: Armv6-M, Armv7-M and Armv8-M Architecture Reference Manuals (system
// timer, NVIC); RISC-V Privileged Architecture (mcycle).
#pragma once

#include <stdint.h>

#include "orch/platform.h"

/// As in executor.cpp.
#ifndef ORCH_TRACE
#define ORCH_TRACE 0
#endif

#if ORCH_TRACE && defined(__riscv)
namespace orch::platform {

uint64_t ticks() {
  uintptr_t low;
  uintptr_t high = 0;
  uintptr_t again = 0;
  do {  // the low half may wrap in between
    __asm__ volatile(
        ".option push\n.option arch, +zicsr\n"
#if __riscv_xlen == 32
        "csrr %1, mcycleh\ncsrr %0, mcycle\ncsrr %2, mcycleh\n"
#else
        "csrr %0, mcycle\n"
#endif
        ".option pop\n"
        : "=&r"(low), "+&r"(high), "+&r"(again));
  } while (high != again);
  return static_cast<uint64_t>(high) << 32 | low;
}

}  // namespace orch::platform
#elif ORCH_TRACE
// SysTick, not the DWT's CYCCNT: Armv6-M and Armv8-M Baseline lack that, QEMU
// does not count it, a Cortex-M7 may lock it, and nothing tells that it
// wrapped. SysTick interrupts at each wrap, so that none is missed.
extern "C" {
void orch_systick();                      // in the vector table
extern const uint8_t orch_flash_begin[];  // from the linker script: the table
}

namespace orch {
namespace {

volatile uint32_t wraps;

volatile uint32_t& core_register(uintptr_t address) {
  return *reinterpret_cast<volatile uint32_t*>(address);
}

void start_systick() {
  // A boot loader may have left interrupts off, those of its peripherals on,
  // and the vector table its own.
#if defined(__ARM_ARCH_6M__)
  constexpr uintptr_t kEnd = 0xE000E184U;
#else
  constexpr uintptr_t kEnd = 0xE000E1C0U;
#endif
  for (uintptr_t at = 0xE000E180U; at < kEnd; at += 4) {
    core_register(at) = 0xFFFFFFFFU;  // NVIC_ICER
  }
  core_register(0xE000ED08U) =  // VTOR; cores without it ignore this
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(orch_flash_begin));
  core_register(0xE000E014U) = 0xFFFFFFU;  // SYST_RVR
  core_register(0xE000E018U) = 0;          // SYST_CVR: begins at 0
  core_register(0xE000E010U) = 7;  // SYST_CSR: core's clock, interrupt, on
  __asm__ volatile("dsb\n isb\n cpsie i" ::: "memory");
}

}  // namespace

namespace platform {

uint64_t ticks() {
  static bool is_started;
  if (!is_started) start_systick();
  is_started = true;
  uint32_t before;
  uint32_t down;
  do {  // it may wrap in between, and its interrupt be pending
    before = wraps;
    down = core_register(0xE000E018U);
    __asm__ volatile("dsb\n isb" ::: "memory");
  } while (before != wraps || (core_register(0xE000ED04U) & 1U << 26) != 0);
  // At 0 it interrupts, then it begins at 2^24 - 1.
  return (static_cast<uint64_t>(before) << 24) + ((0U - down) & 0xFFFFFFU);
}

}  // namespace platform
}  // namespace orch

extern "C" void orch_systick() { orch::wraps = orch::wraps + 1; }
#endif
