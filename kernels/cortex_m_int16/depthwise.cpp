// Depthwise convolution, pixel by pixel.
#include <string.h>

#include "convolve.h"
#include "cortex_m/isa.h"

namespace orch::cortex_m_int16 {
namespace {

/// The taps of a pixel that lie in the input.
struct Window {
  const int16_t* x;  // the first tap's first channel
  const int8_t* w;
  int32_t rows;
  int32_t columns;
  int32_t x_row;
  int32_t x_column;
  int32_t w_row;
  int32_t w_column;
};

/// Calls fn(x, w) for all taps.
template <typename Fn>
ORCH_ALWAYS_INLINE void for_each_tap(const Window& window, const int16_t* x,
                                     const int8_t* w, const Fn& fn) {
  ORCH_FEW_ROUNDS
  for (int32_t i = window.rows; i > 0; --i) {
    const int16_t* from = x;
    const int8_t* weight = w;
    ORCH_FEW_ROUNDS
    for (int32_t j = window.columns; j > 0; --j) {
      fn(from, weight);
      from += window.x_column;
      weight += window.w_column;
    }
    x += window.x_row;
    w += window.w_row;
  }
}

#if ORCH_ISA == ORCH_ISA_MVE
constexpr int kTile = 8;

/// Sums of at most eight channels. Those of even channels are the first four,
/// of odd ones the last.
ORCH_HOT void sum_tile(const Window& window, const int16_t* x, const int8_t* w,
                       int32_t count, int32_t* sums) {
  if (window.rows <= 0 || window.columns <= 0) {
    memset(sums, 0, kTile * sizeof *sums);
    return;
  }
  const int16_t* from;
  const int8_t* weight;
  // Steps in bytes, as the assembly adds them.
  const int32_t x_column = window.x_column * 2;
  const int32_t x_row = window.x_row * 2;
  int32_t rows = window.rows;
  asm volatile(
      "vmov.i32 q0, #0\n"
      "vmov.i32 q1, #0\n"
      "vctp.16 %[count]\n"
      "1:\n"
      "mov %[from], %[x]\n"
      "mov %[weight], %[w]\n"
      "ldr lr, [%[window], #12]\n"
      "dls lr, lr\n"
      "2:\n"
      "vpstt\n"
      "vldrht.u16 q2, [%[from]]\n"
      "vldrbt.s16 q3, [%[weight]]\n"
      "add %[from], %[from], %[x_column]\n"
      "vmullb.s16 q4, q2, q3\n"
      "add %[weight], %[weight], %[w_column]\n"
      "vmullt.s16 q2, q2, q3\n"
      "vadd.i32 q0, q0, q4\n"
      "vadd.i32 q1, q1, q2\n"
      "le lr, 2b\n"
      "ldr lr, [%[window], #24]\n"
      "add %[x], %[x], %[x_row]\n"
      "add %[w], %[w], lr\n"
      "subs %[rows], %[rows], #1\n"
      "bne 1b\n"
      "vstrw.32 q0, [%[sums]]\n"
      "vstrw.32 q1, [%[sums], #16]\n"
      : [from] "=&r"(from), [weight] "=&l"(weight), [x] "+r"(x), [w] "+r"(w),
        [rows] "+r"(rows)
      : [window] "r"(&window), [count] "r"(count), [x_column] "r"(x_column),
        [x_row] "r"(x_row), [w_column] "r"(window.w_column), [sums] "r"(sums)
      : "lr", "q0", "q1", "q2", "q3", "q4", "cc", "memory");
}

/// Where the sum of a channel of a tile is.
constexpr int32_t place(int32_t channel) {
  return (channel & 1) * (kTile / 2) + channel / 2;
}
#else
constexpr int kTile = 4;

#if ORCH_ISA == ORCH_ISA_DSP && ORCH_UNALIGNED
/// sum + a half of `x` times a half of `w`.
#define ORCH_ADD_HALVES(name, instruction)                               \
  ORCH_ALWAYS_INLINE int32_t name(int32_t sum, uint32_t x, uint32_t w) { \
    int32_t result;                                                      \
    asm(instruction " %0, %1, %2, %3"                                    \
        : "=r"(result)                                                   \
        : "r"(x), "r"(w), "r"(sum));                                     \
    return result;                                                       \
  }
ORCH_ADD_HALVES(add_low_low, "smlabb")
ORCH_ADD_HALVES(add_low_high, "smlabt")
ORCH_ADD_HALVES(add_high_low, "smlatb")
ORCH_ADD_HALVES(add_high_high, "smlatt")
#undef ORCH_ADD_HALVES

ORCH_HOT void sum_four(const Window& window, const int16_t* x, const int8_t* w,
                       int32_t* sums) {
  int32_t a = 0;
  int32_t b = 0;
  int32_t c = 0;
  int32_t d = 0;
  for_each_tap(window, x, w, [&](const int16_t* from, const int8_t* weights) {
    uint32_t first;
    uint32_t last;
    uint32_t word;
    memcpy(&first, from, sizeof first);
    memcpy(&last, from + 2, sizeof last);
    memcpy(&word, weights, sizeof word);
    uint32_t even;
    uint32_t odd;
    asm("sxtb16 %0, %1" : "=r"(even) : "r"(word));
    asm("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(word));
    a = add_low_low(a, first, even);
    b = add_high_low(b, first, odd);
    c = add_low_high(c, last, even);
    d = add_high_high(d, last, odd);
  });
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
}
#else
ORCH_HOT void sum_four(const Window& window, const int16_t* x, const int8_t* w,
                       int32_t* sums) {
  int32_t a = 0;
  int32_t b = 0;
  int32_t c = 0;
  int32_t d = 0;
  for_each_tap(window, x, w, [&](const int16_t* from, const int8_t* weights) {
    a += from[0] * weights[0];
    b += from[1] * weights[1];
    c += from[2] * weights[2];
    d += from[3] * weights[3];
  });
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
}
#endif

/// Where the sum of a channel of a tile is.
constexpr int32_t place(int32_t channel) { return channel; }

void sum_tile(const Window& window, const int16_t* x, const int8_t* w,
              int32_t count, int32_t* sums) {
  if (count == kTile) {
    sum_four(window, x, w, sums);
    return;
  }
  ORCH_FEW_ROUNDS
  for (int32_t k = 0; k < count; ++k) {
    int32_t sum = 0;
    for_each_tap(window, x + k, w + k,
                 [&](const int16_t* from, const int8_t* weight) {
                   sum += *from * *weight;
                 });
    sums[k] = sum;
  }
}
#endif

/// Whether 32 bits certainly hold sums.
bool fits(const Window& window) {
  return window.rows * window.columns <= kMostProducts;
}

/// The sum of one channel, of any number of taps.
__attribute__((noinline)) int64_t sum_one(const Window& window,
                                          const int16_t* x, const int8_t* w) {
  if (fits(window)) {
    int32_t sum = 0;
    for_each_tap(window, x, w, [&](const int16_t* from, const int8_t* weight) {
      sum += *from * *weight;
    });
    return sum;
  }
  int64_t sum = 0;
  for_each_tap(window, x, w, [&](const int16_t* from, const int8_t* weight) {
    sum += *from * *weight;
  });
  return sum;
}

/// All channels of a pixel.
ORCH_HOT void compute(const Convolution& conv, const Window& window,
                      int16_t* y) {
  const int32_t outputs = conv.out.channels;
  if (conv.multiplier != 1 || !fits(window)) {
    int32_t c = 0;
    for (int32_t in = 0; in < conv.in.channels; ++in) {
      for (int32_t k = 0; k < conv.multiplier; ++k, ++c) {
        y[c] = conv.any_item(sum_one(window, window.x + in, window.w + c), c);
      }
    }
    return;
  }
  for (int32_t c = 0; c < outputs; c += kTile) {
    const int32_t count = outputs - c < kTile ? outputs - c : kTile;
    int32_t sums[kTile];
    sum_tile(window, window.x + c, window.w + c, count, sums);
    ORCH_FEW_ROUNDS
    for (int32_t k = 0; k < count; ++k) {
      y[c + k] = conv.item(sums[place(k)], c + k);
    }
  }
}

}  // namespace

void convolve_depthwise(const Convolution& conv) {
  const int32_t line = conv.in.width * conv.in.channels;
  Window window;
  window.x_row = wrapping_product(conv.rows.dilation, line);
  window.x_column = wrapping_product(conv.columns.dilation, conv.in.channels);
  window.w_row = conv.columns.kernel * conv.out.channels;
  window.w_column = conv.out.channels;
  int16_t* y = conv.y;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = cortex_m::taps_at(conv.rows, h);
      window.rows = rows.count;
      for (int32_t v = 0; v < conv.out.width; ++v) {
        const Taps columns = cortex_m::taps_at(conv.columns, v);
        window.columns = columns.count;
        window.x = conv.x + ((n * conv.in.height + rows.in) * line +
                             columns.in * conv.in.channels);
        window.w = conv.w + (rows.first * conv.columns.kernel + columns.first) *
                                conv.out.channels;
        compute(conv, window, y);
        y += conv.out.channels;
      }
    }
  }
}

}  // namespace orch::cortex_m_int16
