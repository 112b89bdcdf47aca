// What stack_painter.cpp and the generated calls of the API share.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/span.h"
#include "orch/status.h"

extern "C" uint32_t orch_stack_base[];  // from the linker script

namespace stack {

constexpr uint32_t kPaint = 0xA5C3F00DU;

/// Bytes below this function's stack pointer that `call` writes to. It has to
/// be inlined, so that the call it holds is made from here.
template <typename Call>
__attribute__((noinline)) uint32_t depth_of(Call&& call) {
  volatile uint32_t* top;
#if defined(__riscv)
  __asm__ volatile("mv %0, sp" : "=r"(top));
#else
  __asm__ volatile("mov %0, sp" : "=r"(top));
#endif
  for (volatile uint32_t* p = orch_stack_base; p != top; ++p) *p = kPaint;
  call();
  const volatile uint32_t* lowest = orch_stack_base;
  while (lowest != top && *lowest == kPaint) ++lowest;
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(top) -
                               reinterpret_cast<uintptr_t>(lowest));
}

struct Result {
  orch_status status;
  uint32_t depth;
};

/// Calls of the functions of the API, each measured.
orch::Span<Result (*const)()> entries();

}  // namespace stack
