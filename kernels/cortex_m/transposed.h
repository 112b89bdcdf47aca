// Windows of transposed convolution: which inputs an output sees.
//
// Input i adds to output i * stride - padding + k * dilation for every k of the
// kernel. Outputs that are `stride` apart see the same taps k, of inputs side
// by side: they are one phase.
#pragma once

#include <stdint.h>

#include "image.h"

namespace orch::cortex_m {

/// Taps of the first output of a phase, some of them outside of the input.
struct Phase {
  int32_t first;
  int32_t count;
  int32_t in;  // may be negative
};

/// Reads the size of the output from the others. Errors: InvalidArgument.
inline Error set_transposed_output(const Axis& axis, int32_t output_padding,
                                   TransposedAxis& out) {
  out.axis = axis;
  const int64_t end = int64_t{axis.in - 1} * axis.stride +
                      int64_t{axis.dilation} * (axis.kernel - 1) +
                      output_padding + 1;
  ORCH_CHECK(
      axis.in > 0 && end <= kMaxExtent && end - 2 * int64_t{axis.padding} > 0,
      Error::InvalidArgument);
  out.axis.out = static_cast<int32_t>(end - 2 * int64_t{axis.padding});
  int32_t divisor = axis.stride;  // the greatest common one
  for (int32_t rest = axis.dilation; rest != 0;) {
    const int32_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  out.tap_step = axis.stride / divisor;
  out.in_step = axis.dilation / divisor;
  return Error::Ok;
}

/// How many phases have outputs.
inline int32_t phase_count(const TransposedAxis& transposed) {
  const Axis& axis = transposed.axis;
  return axis.out < axis.stride ? axis.out : axis.stride;
}

/// The phase of output `o`, which is less than phase_count.
inline Phase phase_at(const TransposedAxis& transposed, int32_t o) {
  const Axis& axis = transposed.axis;
  Phase phase = {0, 0, o + axis.padding};
  ORCH_FEW_ROUNDS
  while (phase.first < axis.kernel && phase.in % axis.stride != 0) {
    ++phase.first;
    phase.in -= axis.dilation;
  }
  phase.in /= axis.stride;
  if (phase.first < axis.kernel) {
    phase.count = (axis.kernel - 1 - phase.first) / transposed.tap_step + 1;
  }
  return phase;
}

/// Taps of output `index` of a phase that lie in the input.
inline Taps taps_at(const TransposedAxis& transposed, const Phase& phase,
                    int32_t index) {
  Taps taps = {phase.first, phase.count, phase.in + index};
  ORCH_FEW_ROUNDS
  while (taps.count > 0 && taps.in >= transposed.axis.in) {
    taps.in -= transposed.in_step;
    taps.first += transposed.tap_step;
    --taps.count;
  }
  ORCH_FEW_ROUNDS
  while (taps.count > 0 && taps.in < (taps.count - 1) * transposed.in_step) {
    --taps.count;
  }
  if (taps.count == 0) taps.in = taps.first = 0;
  return taps;
}

}  // namespace orch::cortex_m
