#include "int4.h"
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_DSP

#include "orch/kernel.h"
#include "packed_dsp.h"
#include "packed_limits.h"

namespace orch::cortex_m {

// What packed weights are run with, one block of channels after the other.
void packed_conv2d(const PreparedCall& call);

namespace {

/// A number in both halves of a word.
ORCH_ALWAYS_INLINE uint32_t twice(uint32_t number) {
  return (number & 0xFFFFU) * 0x10001U;
}

ORCH_ALWAYS_INLINE uint32_t subtract_halves(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("ssub16 %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

/// Weights of a pair of channels, of taps with the same steps, as 16 bits.
ORCH_HOT const uint32_t* expand(const uint32_t* from, int32_t taps, uint32_t a,
                                uint32_t b, uint32_t* to) {
  const uint32_t* const end = from + taps / 4;
  b *= 256;
  const uint32_t eight = twice(8 * (a + b));
  do {
    // No half of these sums has more than 16 bits.
    constexpr uint32_t kNumbers = 0x000F000F;
    const uint32_t four = *from++;
    to[0] = subtract_halves((four & kNumbers) * a + (four >> 8 & kNumbers) * b,
                            eight);
    to[1] = subtract_halves(
        (four >> 4 & kNumbers) * a + (four >> 12 & kNumbers) * b, eight);
    to += 2;
  } while (from != end);
  return end;
}

/// How sums of A, or of B, become outputs, as packed_conv2d reads it.
/// passes/packing/scaling.py finds the same.
PackedScale scale_of(const Int4Pair& pair, int channel, int32_t offset) {
  const int32_t multiplier = pair.multiplier[channel];
  // Bits that the multiplier does not use.
  const int32_t more =
      multiplier != 0 ? __builtin_clz(static_cast<uint32_t>(multiplier)) - 1
                      : 0;
  const int32_t shift = pair.shift[channel];
  const bool is_a = channel == 0;
  const int32_t left = is_a ? 14 - shift - more : 8;
  const int32_t right = shift + more + left - 1;
  uint32_t add = 1U << (more + left - 2);
  if (shift != 0) add += 1U << (right - 1);
  add += static_cast<uint32_t>(offset) << right;
  const uint32_t bits = static_cast<uint32_t>(is_a ? left : right);
  return {multiplier << more, static_cast<int32_t>(add),
          uint32_t{pair.to[channel]} << 8 | bits};
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPairs, `weights` an Int4Weights and an Int4Pair for each
// pair of channels; `scratch` holds a block of pairs as packed_conv2d reads
// them, then what that needs. The build has checked everything.
void int4_packed_conv2d(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  PackedPairs header = *static_cast<const PackedPairs*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  const uint32_t* from =
      reinterpret_cast<const uint32_t*>(&packed) + sizeof packed / 4;
  uint32_t* const block = static_cast<uint32_t*>(call.scratch);
  const int32_t words = 8 + header.weight_bytes / 4;  // of a pair
  const PackedCall part = {
      {packed_conv2d}, call.input, &header, block, block + packed.block * words,
      call.out};
  // A tail of a block is computed as a smaller one.
  int32_t left = header.all_bytes / (4 * words);
  while (left > 0) {
    const int32_t count = left < packed.block ? left : packed.block;
    uint32_t* to = block;
    for (int32_t i = 0; i < count; ++i) {
      const Int4Pair& pair = *reinterpret_cast<const Int4Pair*>(from);
      from += sizeof pair / 4;
      to[0] = static_cast<uint32_t>(pair.start[0]) +
              (static_cast<uint32_t>(pair.start[1]) << 8);
      to[1] = static_cast<uint32_t>(pair.start[0]);
      to += 2;
      uint32_t steps = pair.step[0] | uint32_t{pair.step[1]} << 8;
      for (int32_t taps = header.conv.depth; taps > 0; taps -= packed.group) {
        const int32_t part_taps = taps < packed.group ? taps : packed.group;
        from = expand(from, part_taps, steps & 0xFF, steps >> 8, to);
        to += part_taps / 2;
        if (taps > packed.group) steps = *from++;
      }
      PackedScale* const scales = reinterpret_cast<PackedScale*>(to);
      scales[0] = scale_of(pair, 0, header.conv.offset);
      scales[1] = scale_of(pair, 1, header.conv.offset);
      to += 6;
    }
    header.all_bytes = count * words * 4;
    packed_conv2d(part);
    left -= count;
  }
}

ORCH_PACKED_FORMS(PackedPairs, int4_packed_conv2d, int4_limited_packed_conv2d)

}  // namespace orch::cortex_m

#endif
