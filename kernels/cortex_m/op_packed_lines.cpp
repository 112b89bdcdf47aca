#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include "orch/kernel.h"
#include "packed_limits.h"
#include "packed_loops_mve.h"
#include "packed_strip.h"

namespace orch::cortex_m {
namespace {

/// Copies lines of each of some columns to their places in a strip, where 16
/// items of a line are beside those of the next one, `block` bytes before the
/// next items.
void copy_column(const PackedConvolution& conv, const PackedSteps& steps,
                 const int8_t* image, const Taps& columns, const Taps& lines,
                 int8_t* strip, int32_t block) {
  if (lines.count <= 0) return;
  image += columns.in * steps.x_pixel + lines.in * steps.x_line;
  strip += lines.first * 16 + columns.first * (conv.in_channels / 16) * block;
  for (int32_t left = columns.count; left > 0; --left) {
    for (int32_t i = 0; i < conv.in_channels; i += 16) {
      const int8_t* x = image + i;
      int8_t* y = strip;
      asm volatile(
          "dls lr, %[lines]\n"
          "1:\n"
          "vldrb.8 q0, [%[x]]\n"
          "add %[x], %[x], %[x_line]\n"
          "vstrb.8 q0, [%[y]], #16\n"
          "le lr, 1b\n"
          : [x] "+l"(x), [y] "+l"(y)
          : [lines] "r"(lines.count), [x_line] "r"(steps.x_line)
          : "lr", "q0", "memory");
      strip += block;
    }
    image += conv.columns.dilation * steps.x_pixel;
  }
}

/// Computes all channels of a column. Which loop is no pointer: that could then
/// be to any function, as far as bounds on the stack know.
ORCH_ALWAYS_INLINE void compute_column(const int8_t* strip,
                                       const uint8_t* tiles, int8_t* y,
                                       const Column& column,
                                       [[maybe_unused]] bool by_three) {
#if ORCH_FAVOUR_SPEED
  if (by_three && column.offset == -128) {
    orch_packed_lines_3(strip, tiles, y, &column);
  } else if (by_three) {
    orch_packed_lines_3_ties(strip, tiles, y, &column);
  } else
#endif
  {
    orch_packed_lines(strip, tiles, y, &column);
  }
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedLines, `weights` tiles of two channels; `scratch` has
// room for a strip. The build has checked everything.
void packed_lines(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const int8_t* image = static_cast<const int8_t*>(call.input);
  const PackedLines* const packed =
      static_cast<const PackedLines*>(call.header);
  int8_t* const strip = static_cast<int8_t*>(call.scratch);
  int8_t* y = static_cast<int8_t*>(call.out);
  const uint8_t* const tiles = static_cast<const uint8_t*>(call.weights);
  const PackedConvolution& conv = packed->conv;
  Axis axis = conv.rows;
  axis.kernel += packed->pixels - 1;
  const int32_t block = axis.kernel * 16;
  const int32_t bytes = packed->blocks * block;
  const PackedSteps& steps = packed->steps;
  Column column = {
      0,          block - 96, packed->blocks, conv.out_channels, steps.y_line,
      conv.offset};
  const bool by_three =
      kFavourSpeed && column.blocks % 3 == 0 && column.channels % 2 == 0;
  if (by_three) column.blocks /= 3;
  for (int32_t n = 0; n < conv.batch; ++n) {
    for (int32_t h = 0; h < axis.out; h += packed->pixels) {
      const Taps lines = taps_at(axis, h);
      column.count = axis.out - h;
      if (column.count > packed->pixels) column.count = packed->pixels;
      int8_t* to = y + h * steps.y_line;
      // Whether padding of lines is in the strip, where it stays.
      bool is_padded = lines.count == axis.kernel;
      for (int32_t v = 0; v < conv.columns.out; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        const bool is_inside = columns.count == conv.columns.kernel;
        if (!is_inside || !is_padded) fill(strip, bytes, conv.padding);
        is_padded = true;
        copy_column(conv, steps, image, columns, lines, strip, block);
        compute_column(strip, tiles, to, column, by_three);
        to += steps.y_pixel;
      }
    }
    // Calls of several images have rows as lines.
    y += conv.columns.out * steps.y_pixel + (axis.out - 1) * steps.y_line;
    image += conv.rows.in * steps.x_line;
  }
}
ORCH_PACKED_FORMS(PackedLines, packed_lines, limited_packed_lines)

}  // namespace orch::cortex_m

#endif
