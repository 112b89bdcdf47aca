// Registers that are written before something works: watchdogs, clocks, pins.
// Boards describe them; generated headers have them as tables.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace orch {

/// The bits of `mask` become `value`; or they are waited for.
struct Setting {
  uintptr_t address;
  uint32_t mask;
  uint32_t value;
  bool waits;
};

/// Inlined, as start-up code calls it where no function can be called yet.
template <size_t kCount>
[[gnu::always_inline]] inline void apply(const Setting (&settings)[kCount]) {
  for (const Setting& one : settings) {
    volatile uint32_t& found =
        *reinterpret_cast<volatile uint32_t*>(one.address);
    if (!one.waits) found = (found & ~one.mask) | one.value;
    while (one.waits && (found & one.mask) != one.value) {
    }
  }
}

}  // namespace orch
