// What the pixels of a column see, brought together with vector instructions.
#pragma once

#include <stdint.h>

#include "isa.h"
#include "packed.h"

namespace orch::cortex_m {

/// Where a strip has things, in bytes, and where the image has them.
struct Strip {
  int32_t line;   // from a line of the image to the next one
  int32_t block;  // from 16 items of a line to the next ones
  int32_t tap;    // from a tap of a line to the next one
  PackedSteps from;
};

/// Copies `items` bytes of each of some lines.
__attribute__((noinline)) inline void copy_lines(const int8_t* from,
                                                 int32_t from_line,
                                                 int32_t items, int32_t lines,
                                                 int8_t* to,
                                                 const Strip& strip) {
  if (lines <= 0) return;
  for (; items > 0; items -= 16) {
    const int8_t* x = from;
    int8_t* y = to;
    asm volatile(
        "vctp.8 %[items]\n"
        "dls lr, %[lines]\n"
        "1:\n"
        "vpstt\n"
        "vldrbt.8 q0, [%[x]]\n"
        "vstrbt.8 q0, [%[y]]\n"
        "add %[x], %[x], %[x_step]\n"
        "add %[y], %[y], %[y_step]\n"
        "le lr, 1b\n"
        : [x] "+l"(x), [y] "+l"(y)
        : [items] "r"(items), [lines] "r"(lines), [x_step] "r"(from_line),
          [y_step] "r"(strip.line)
        : "lr", "q0", "cc", "memory");
    from += 16;
    to += strip.block;
  }
}

/// The inputs of a single pixel in whole vectors: in scratch memory, if they
/// are not that many.
ORCH_ALWAYS_INLINE const int8_t* whole_vectors(const PackedCall& call,
                                               const PackedConvolution& conv) {
  const int8_t* const x = static_cast<const int8_t*>(call.input);
  if (conv.depth == conv.in_channels) return x;
  int8_t* const to = static_cast<int8_t*>(call.scratch);
  copy_lines(x, 0, conv.in_channels, 1, to, {0, 16, 0, {}});
  return to;
}

/// Copies lines of up to eight items that lie side by side, for some taps, up
/// to 16 bytes at a time.
///
/// to: a strip whose lines have 1 to 16 times as many items; steps: to the next
/// tap.
ORCH_ALWAYS_INLINE void copy_side_by_side(const int8_t* from, int32_t from_step,
                                          int32_t items, int32_t lines,
                                          int32_t taps, int8_t* to,
                                          int32_t to_step, int32_t to_line) {
  if (lines <= 0 || taps <= 0) return;
  // Where bytes go: those of a line are next to each other.
  int8_t where[16];
  asm volatile(
      "movs r2, #0\n"
      "mov r3, %[items]\n"
      "viwdup.u8 q1, r2, r3, #1\n"
      "movs r2, #0\n"
      "vidup.u8 q2, r2, #1\n"
      "vsub.i8 q2, q2, q1\n"
      "vmul.i8 q2, q2, %[times]\n"
      "vadd.i8 q1, q1, q2\n"
      "vstrb.8 q1, [%[where]]\n"
      :
      : [items] "r"(items), [times] "r"(to_line / items), [where] "r"(where)
      : "r2", "r3", "q1", "q2", "cc", "memory");
  const int32_t count = 16 / items;
  int32_t left = lines * items;
  asm volatile(
      "vldrb.8 q1, [%[where]]\n"
      "1:\n"
      "vctp.8 %[left]\n"
      "dls lr, %[taps]\n"
      "2:\n"
      "vpstt\n"
      "vldrbt.8 q0, [%[x]]\n"
      "vstrbt.8 q0, [%[y], q1]\n"
      "add %[x], %[x], %[x_step]\n"
      "add %[y], %[y], %[y_step]\n"
      "le lr, 2b\n"
      "add %[x], %[x], %[x_back]\n"
      "add %[y], %[y], %[y_back]\n"
      "subs %[left], %[left], %[step]\n"
      "bgt 1b\n"
      : [x] "+&r"(from), [y] "+&r"(to), [left] "+&r"(left)
      : [where] "r"(where), [taps] "r"(taps), [x_step] "r"(from_step),
        [y_step] "r"(to_step), [step] "r"(count * items),
        [x_back] "r"(count * items - taps * from_step),
        [y_back] "r"(count * to_line - taps * to_step)
      : "lr", "q0", "q1", "cc", "memory");
}

/// Writes `items` bytes.
ORCH_ALWAYS_INLINE void fill(int8_t* to, int32_t items, int32_t value) {
  asm volatile(
      "vdup.8 q0, %[value]\n"
      "wlstp.8 lr, %[items], 2f\n"
      "1:\n"
      "vstrb.8 q0, [%[to]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [to] "+l"(to)
      : [items] "r"(items), [value] "r"(value)
      : "lr", "q0", "cc", "memory");
}

/// Writes a vector of 16 bytes.
ORCH_ALWAYS_INLINE void fill_vector(uint8_t* to, int32_t value) {
  asm volatile(
      "vdup.8 q0, %[value]\n"
      "vstrb.8 q0, [%[to]]\n"
      :
      : [to] "l"(to), [value] "r"(value)
      : "q0", "memory");
}

/// Brings together what output `first` along `axis` sees, which are the rows,
/// or as many of them as a strip has.
///
/// image: the first one of `columns`, in the first line; bytes: of the strip;
/// kBand: whether there may be many lines of few items side by side.
template <bool kBand = false>
__attribute__((noinline)) inline void gather_lines(
    const PackedConvolution& conv, const int8_t* image, const Taps& columns,
    const Axis& axis, int32_t first, int8_t* to, const Strip& strip,
    int32_t bytes) {
  const Taps lines = taps_at(axis, first);
  const int32_t channels = conv.in_channels;
  if (lines.count < axis.kernel || columns.count < conv.columns.kernel) {
    fill(to, bytes, conv.padding);
  }
  to += lines.first * strip.line + columns.first * strip.tap;
  image += lines.in * strip.from.x_line;
  int32_t items = columns.count * channels;
  int32_t pieces = 1;
  if (conv.columns.dilation != 1 || strip.from.x_pixel != channels) {
    items = channels;
    pieces = columns.count;
    if constexpr (kBand) {
      if (channels <= 8 && conv.columns.kernel <= 16 &&
          axis.dilation * strip.from.x_line == channels) {
        copy_side_by_side(image, conv.columns.dilation * strip.from.x_pixel,
                          channels, lines.count, pieces, to, strip.tap,
                          strip.line);
        return;
      }
    }
  }
  for (; pieces > 0; --pieces) {
    copy_lines(image, axis.dilation * strip.from.x_line, items, lines.count, to,
               strip);
    image += conv.columns.dilation * strip.from.x_pixel;
    to += strip.tap;
  }
}

}  // namespace orch::cortex_m
