// Packed kernels whose calls have limits that are not those of int8.
//
// Loops store items within int8, for nothing. Other limits are applied to the
// whole output afterwards: several items at a time, that takes less than limits
// in the loops would, and these stay as they are.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/kernel.h"
#include "packed.h"
#if ORCH_ISA == ORCH_ISA_DSP
#include "packed_dsp.h"
#endif

namespace orch::cortex_m {

inline int32_t outputs_of(const PackedConvolution& conv) {
  return conv.batch * conv.rows.out * conv.columns.out * conv.out_channels;
}

/// Headers of other kernels have a convolution.
template <typename Header>
int32_t outputs_of(const Header& header) {
  return outputs_of(header.conv);
}

#if ORCH_ISA == ORCH_ISA_DSP

inline int32_t outputs_of(const PackedMatrix& matrix) {
  return matrix.pixels * matrix.out_channels;
}

#else

inline int32_t outputs_of(const PackedPixels& phase) {
  // One of several has its share of an image.
  if (phase.next != 0) return phase.conv.batch * phase.y_image;
  return outputs_of(phase.conv);
}

inline int32_t outputs_of(const PackedDepthwiseStrips& conv) {
  return conv.batch * conv.across.out * conv.along.out * conv.channels;
}

#endif

// At -Os, gcc would call it.
ORCH_ALWAYS_INLINE int32_t outputs_of(const PackedDepthwise& conv) {
  return conv.batch * conv.rows.out * conv.columns.out * conv.outputs;
}

/// Brings items within limits.
__attribute__((noinline)) inline void limit_items(int8_t* items, int32_t count,
                                                  const Range& range) {
#if ORCH_ISA == ORCH_ISA_MVE
  asm volatile(
      "vdup.8 q1, %[low]\n"
      "vdup.8 q2, %[high]\n"
      "wlstp.8 lr, %[count], 2f\n"
      "1:\n"
      "vldrb.8 q0, [%[items]]\n"
      "vmax.s8 q0, q0, q1\n"
      "vmin.s8 q0, q0, q2\n"
      "vstrb.8 q0, [%[items]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [items] "+l"(items)
      : [count] "r"(count), [low] "r"(range.low), [high] "r"(range.high)
      : "lr", "q0", "q1", "q2", "cc", "memory");
#else
  int8_t* const end = items + count;
#if ORCH_ISA == ORCH_ISA_DSP
  const uint32_t low = static_cast<uint8_t>(range.low) * 0x01010101U;
  const uint32_t high = static_cast<uint8_t>(range.high) * 0x01010101U;
  ORCH_FEW_ROUNDS
  while (end - items >= 4) {
    uint32_t four;
    uint32_t difference;
    memcpy(&four, items, sizeof four);
    asm("ssub8 %[difference], %[four], %[low]\n"
        "sel %[four], %[four], %[low]\n"
        "ssub8 %[difference], %[high], %[four]\n"
        "sel %[four], %[four], %[high]\n"
        : [four] "+r"(four), [difference] "=&r"(difference)
        : [low] "r"(low), [high] "r"(high)
        : "cc");
    memcpy(items, &four, sizeof four);
    items += 4;
  }
#endif
  ORCH_FEW_ROUNDS
  for (; items != end; ++items) {
    *items = static_cast<int8_t>(clamp(*items, range));
  }
#endif
}

/// Runs a kernel, and brings its outputs within the limits of the call.
template <typename Header>
ORCH_ALWAYS_INLINE void run_limited(void (*run)(const PreparedCall& call),
                                    const PreparedCall& prepared) {
  const LimitedPackedCall& call =
      static_cast<const LimitedPackedCall&>(prepared);
  run(PackedCall{
      {run}, call.input, call.header, call.weights, call.scratch, call.out});
  limit_items(static_cast<int8_t*>(call.out),
              outputs_of(*static_cast<const Header*>(call.header)), call.range);
}

/// The same on arguments of packed calls, with `int low, int high` in front of
/// `out`.
template <typename Header>
Error run_limited(void (*run)(const PreparedCall& call), const Args& args) {
  const int out = static_cast<int>(args.count()) - 1;
  const PackedCall call = packed_call(run, args, out == 6);
  run_limited<Header>(
      run, LimitedPackedCall{{run},
                             call.input,
                             call.header,
                             call.weights,
                             call.scratch,
                             call.out,
                             {static_cast<int32_t>(args.integer(out - 2)),
                              static_cast<int32_t>(args.integer(out - 1))}});
  return Error::Ok;
}

/// The forms of a packed kernel `name` besides the one for prepared calls: for
/// arguments, and `limited`, for prepared calls and arguments that have limits,
/// `int low, int high` in front of `out`. Bands have prepared calls only.
#define ORCH_LIMITED_BAND(Header, name, limited) \
  void limited(const PreparedCall& call) { run_limited<Header>(name, call); }
#define ORCH_PACKED_FORMS(Header, name, limited)                        \
  Error name##_out(const Args& args) { return run_packed(name, args); } \
  ORCH_LIMITED_BAND(Header, name, limited)                              \
  Error limited##_out(const Args& args) {                               \
    return run_limited<Header>(name, args);                             \
  }

}  // namespace orch::cortex_m
