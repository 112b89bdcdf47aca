// Averages of whole images that are never whole: rows are added as they come.
#include <string.h>

#include "image.h"
#include "prepared.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "mve.h"
#elif ORCH_ISA == ORCH_ISA_DSP
#include "tile_dsp.h"
#endif

namespace orch::cortex_m {

#if ORCH_ISA == ORCH_ISA_DSP
/// Adds whole words of items to their sums.
ORCH_ALWAYS_INLINE void add_words(const int8_t* x, int32_t words,
                                  int32_t* sums) {
  asm volatile(
      "1:\n"
      "ldr r2, [%[x]], #4\n"
      "ldm %[sums], {r3, r4, r5, r6}\n"
      "sxtab r3, r3, r2\n"
      "sxtab r4, r4, r2, ror #8\n"
      "sxtab r5, r5, r2, ror #16\n"
      "sxtab r6, r6, r2, ror #24\n"
      "stm %[sums]!, {r3, r4, r5, r6}\n"
      "subs %[words], #1\n"
      "bne 1b\n"
      : [x] "+r"(x), [words] "+r"(words), [sums] "+r"(sums)
      :
      : "r2", "r3", "r4", "r5", "r6", "cc", "memory");
}
#endif

#if ORCH_ISA == ORCH_ISA_MVE
// Prepared: adds pixels to the sums of their channels, which stay in registers,
// eight at a time.
ORCH_HOT void sum_rows(const PreparedCall& prepared) {
  const SumRowsCall& call = static_cast<const SumRowsCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int32_t* sums = static_cast<int32_t*>(call.out);
  const int32_t channels = call.channels;
  if (call.begins != 0) {
    memset(sums, 0, static_cast<size_t>(channels) * sizeof *sums);
  }
  int32_t left = channels;
  for (; left >= 8; left -= 8) {
    int32x4_t low = vldrwq_s32(sums);
    int32x4_t high = vldrwq_s32(sums + 4);
    const int8_t* from = x;
    for (int32_t pixel = call.pixels; pixel > 0; --pixel) {
      low = vaddq_s32(low, vldrbq_s32(from));
      high = vaddq_s32(high, vldrbq_s32(from + 4));
      from += channels;
    }
    vstrwq_s32(sums, low);
    vstrwq_s32(sums + 4, high);
    x += 8;
    sums += 8;
  }
  for (; left > 0; --left) {
    const int8_t* from = x++;
    for (int32_t pixel = call.pixels; pixel > 0; --pixel) {
      *sums += *from;
      from += channels;
    }
    ++sums;
  }
}
#else
// Prepared: adds pixels to the sums of their channels.
ORCH_HOT void sum_rows(const PreparedCall& prepared) {
  const SumRowsCall& call = static_cast<const SumRowsCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int32_t* const sums = static_cast<int32_t*>(call.out);
  const int32_t channels = call.channels;
  if (call.begins != 0) {
    memset(sums, 0, static_cast<size_t>(channels) * sizeof *sums);
  }
  for (int32_t pixel = call.pixels; pixel > 0; --pixel) {
    int32_t c = 0;
#if ORCH_ISA == ORCH_ISA_DSP
    if (channels >= 4 && in_words(x, 0)) {
      c = channels & ~3;
      add_words(x, c / 4, sums);
      x += c;
    }
#endif
    for (; c < channels; ++c) sums[c] += *x++;
  }
}
#endif

// Prepared: averages of sums; ties go away from zero, as those of
// quantized_avg_pool2d.
void average_sums(const PreparedCall& prepared) {
  const AverageSumsCall& call = static_cast<const AverageSumsCall&>(prepared);
  const int32_t* const sums = static_cast<const int32_t*>(call.input);
  int8_t* const y = static_cast<int8_t*>(call.out);
  const int32_t half = call.pixels / 2;
  for (int32_t c = 0; c < call.channels; ++c) {
    const int32_t sum = sums[c];
    y[c] =
        static_cast<int8_t>((sum > 0 ? sum + half : sum - half) / call.pixels);
  }
}

}  // namespace orch::cortex_m
