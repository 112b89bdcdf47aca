#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <string.h>

#include "int4.h"
#include "orch/kernel.h"
#include "packed_limits.h"
#include "packed_loops_mve.h"
#include "packed_strip.h"

namespace orch::cortex_m {

// What packed weights are run with, one block of channels after the other.
void packed_pixels(const PreparedCall& call);
#define ORCH_UNROLLED_PACKED(vectors) \
  void packed_pixels_##vectors(const PreparedCall& call);
ORCH_UNROLLED(ORCH_UNROLLED_PACKED)

namespace {

constexpr int32_t kTile = 4;  // channels

/// Weights of a tile, of some vectors of taps with the same steps.
ORCH_ALWAYS_INLINE const uint8_t* expand(const uint8_t* from, int32_t vectors,
                                         const uint8_t* steps, uint8_t* to) {
  asm volatile(
      "dls lr, %[vectors]\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vshl.i8 q1, q0, #4\n"
      "vldrb.8 q2, [%[from]], #16\n"
      "vshr.s8 q1, q1, #4\n"
      "vmul.i8 q1, q1, %[s0]\n"
      "vstrb.8 q1, [%[to]], #16\n"
      "vshr.s8 q0, q0, #4\n"
      "vmul.i8 q0, q0, %[s1]\n"
      "vstrb.8 q0, [%[to]], #16\n"
      "vshl.i8 q1, q2, #4\n"
      "vshr.s8 q1, q1, #4\n"
      "vmul.i8 q1, q1, %[s2]\n"
      "vstrb.8 q1, [%[to]], #16\n"
      "vshr.s8 q2, q2, #4\n"
      "vmul.i8 q2, q2, %[s3]\n"
      "vstrb.8 q2, [%[to]], #16\n"
      "le lr, 1b\n"
      : [from] "+l"(from), [to] "+l"(to)
      : [vectors] "r"(vectors), [s0] "r"(steps[0]), [s1] "r"(steps[1]),
        [s2] "r"(steps[2]), [s3] "r"(steps[3])
      : "lr", "q0", "q1", "q2", "cc", "memory");
  return from;
}

/// Tiles of int8 weights, as packed_pixels reads them.
__attribute__((noinline)) const uint8_t* expand_tiles(const uint8_t* from,
                                                      int32_t tiles,
                                                      int32_t depth,
                                                      int32_t group,
                                                      uint8_t* to) {
  for (; tiles > 0; --tiles) {
    memcpy(to, from, 16);
    uint8_t* const scales = to + 16 + kTile * depth;
    memcpy(scales, from + 16, 16);
    from += 32;
    for (int i = 0; i < kTile; ++i) {
      const int32_t shift = static_cast<int8_t>(from[i]);
      memcpy(scales + 16 + 4 * i, &shift, sizeof shift);
    }
    from += kTile;
    to += 16;
    for (int32_t taps = depth; taps > 0; taps -= group) {
      const int32_t some = taps < group ? taps : group;
      from = expand(from + kTile, some / 16, from, to);
      to += kTile * some;
    }
    to += 32;
  }
  return from;
}

template <void (&kRun)(const PreparedCall&)>
void compute_blocks(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  PackedPixels header = *static_cast<const PackedPixels*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  const uint8_t* from =
      reinterpret_cast<const uint8_t*>(&packed) + sizeof packed;
  uint8_t* const block = static_cast<uint8_t*>(call.scratch);
  const int32_t bytes = packed.block * (48 + kTile * header.conv.depth);
  const PackedCall part = {{kRun}, call.input,    &header,
                           block,  block + bytes, call.out};
  const int32_t most = kTile * packed.block;
  for (int32_t left = header.conv.out_channels; left > 0; left -= most) {
    const int32_t channels = left < most ? left : most;
    from = expand_tiles(from, (channels + kTile - 1) / kTile, header.conv.depth,
                        packed.group, block);
    header.conv.out_channels = channels;
    kRun(part);
    header.y_first += channels;
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPixels, `weights` an Int4Weights and tiles of four
// channels; `scratch` holds a block of tiles as packed_pixels reads them, then
// what that needs. The build has checked everything.
#define ORCH_INT4_PIXELS(name, limited, packed)                         \
  void name(const PreparedCall& call) { compute_blocks<packed>(call); } \
  ORCH_PACKED_FORMS(PackedPixels, name, limited)

ORCH_INT4_PIXELS(int4_packed_pixels, int4_limited_packed_pixels, packed_pixels)
#define ORCH_UNROLLED_INT4(vectors)                      \
  ORCH_INT4_PIXELS(int4_packed_pixels_##vectors,         \
                   int4_limited_packed_pixels_##vectors, \
                   packed_pixels_##vectors)
ORCH_UNROLLED(ORCH_UNROLLED_INT4)

// The same of a single pixel, as in a matrix product of one row: `header` is a
// PackedPixel, tiles are of eight channels.
ORCH_HOT void int4_packed_pixel(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const PackedPixel& pixel = *static_cast<const PackedPixel*>(call.header);
  const Int4Weights& packed = *static_cast<const Int4Weights*>(call.weights);
  orch_int4_pixel(whole_vectors(call, pixel.conv),
                  reinterpret_cast<const uint8_t*>(&packed) + sizeof packed,
                  static_cast<int8_t*>(call.out), &pixel, packed.group);
}
ORCH_PACKED_FORMS(PackedPixel, int4_packed_pixel, int4_limited_packed_pixel)

}  // namespace orch::cortex_m

#endif
