// The larger or smaller of two int8 numbers, several at once where the core has
// instructions for that.
#pragma once

#include <string.h>

#include "elementwise.h"

namespace orch::cortex_m {

#if ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED

/// Of four pairs of numbers.
template <bool kLargest>
uint32_t extreme_of_four(uint32_t a, uint32_t b) {
  uint32_t difference;
  uint32_t result;
  if constexpr (kLargest) {
    asm("ssub8 %0, %2, %3\n"
        "sel %1, %2, %3\n"
        : "=&r"(difference), "=r"(result)
        : "r"(a), "r"(b)
        : "cc");
  } else {
    asm("ssub8 %0, %2, %3\n"
        "sel %1, %3, %2\n"
        : "=&r"(difference), "=r"(result)
        : "r"(a), "r"(b)
        : "cc");
  }
  return result;
}

inline uint32_t load_four(const int8_t* from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return word;
}

#endif

/// Items of a row.
template <bool kLargest>
ORCH_ALWAYS_INLINE void extreme_row(PairRow<int8_t> row) {
  const bool side_by_side =
      row.a_step == 1 && row.b_step == 1 && row.to_step == 1;
#if ORCH_ISA == ORCH_ISA_MVE
  if (side_by_side) {
    if constexpr (kLargest) {
      asm volatile(
          "wlstp.8 lr, %3, 2f\n"
          "1:\n"
          "vldrb.8 q0, [%0], #16\n"
          "vldrb.8 q1, [%1], #16\n"
          "vmax.s8 q0, q0, q1\n"
          "vstrb.8 q0, [%2], #16\n"
          "letp lr, 1b\n"
          "2:\n"
          : "+r"(row.a), "+r"(row.b), "+r"(row.to)
          : "r"(row.count)
          : "lr", "q0", "q1", "memory");
    } else {
      asm volatile(
          "wlstp.8 lr, %3, 2f\n"
          "1:\n"
          "vldrb.8 q0, [%0], #16\n"
          "vldrb.8 q1, [%1], #16\n"
          "vmin.s8 q0, q0, q1\n"
          "vstrb.8 q0, [%2], #16\n"
          "letp lr, 1b\n"
          "2:\n"
          : "+r"(row.a), "+r"(row.b), "+r"(row.to)
          : "r"(row.count)
          : "lr", "q0", "q1", "memory");
    }
    return;
  }
#elif ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
  for (; side_by_side && row.count >= 4; row.count -= 4) {
    const uint32_t word =
        extreme_of_four<kLargest>(load_four(row.a), load_four(row.b));
    memcpy(row.to, &word, sizeof word);
    row.a += 4;
    row.b += 4;
    row.to += 4;
  }
#else
  static_cast<void>(side_by_side);
#endif
  map_row(row,
          [](int32_t a, int32_t b) { return (a > b) == kLargest ? a : b; });
}

/// out = the larger or smaller of a and b, item by item.
template <bool kLargest>
Error extreme(const Tensor& a, const Tensor& b, Tensor& out) {
  ORCH_TRY(prepare_pair(a, b, out));
  for_each_pair_row<int8_t>(a, b, out, [](const PairRow<int8_t>& row) {
    extreme_row<kLargest>(row);
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m
