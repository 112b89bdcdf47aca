#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include "orch/kernel.h"
#include "packed_limits.h"
#include "packed_loops_mve.h"
#include "packed_strip.h"

namespace orch::cortex_m {
namespace {

#if ORCH_FAVOUR_SPEED
/// Pixels of any depth. Loading the weights of a tile takes as long as is saved
/// at some seven pixels.
void compute_pixels(const int8_t* x, const uint8_t* tiles, int8_t* y,
                    const Run* run) {
  if (run->depth == 16 && run->count >= 8) {
    orch_packed_pixels_16(x, tiles, y, run);
  } else {
    orch_packed_pixels(x, tiles, y, run);
  }
}
#else
constexpr PixelLoop& compute_pixels = orch_packed_pixels;
#endif

/// Goes over all pixels of the output, from line to line of a column; in a band
/// with an odd last one by itself.
template <PixelLoop& kLoop, bool kBand>
__attribute__((noinline)) void compute_columns(const PackedPixels& packed,
                                               const int8_t* image,
                                               const uint8_t* tiles,
                                               int8_t* strip, int8_t* y) {
  const PackedConvolution& conv = packed.conv;
  const int32_t channels = conv.in_channels;
  const int32_t line = packed.steps.x_line;
  const int32_t width = conv.columns.kernel * channels;
  const int8_t* const end = image + packed.in_bytes;
  Run run;
  run.y_step = packed.steps.y_line;
  run.depth = conv.depth;
  run.channels = conv.out_channels;
  run.offset = conv.offset;
#if ORCH_FAVOUR_SPEED
  run.special = (conv.offset - INT8_MIN) | (conv.out_channels & 3);
#endif
  const Strip to = {width, 16, channels, packed.steps};
  Axis axis = conv.rows;
  // Windows without lines between them are parts of one strip.
  const bool joined = axis.dilation == 1 && axis.stride <= axis.kernel;
  image += packed.x_first;
  y += packed.y_first;
  for (int32_t n = 0; n < conv.batch; ++n) {
    int8_t* to_column = y;
    for (int32_t v = 0; v < conv.columns.out; ++v) {
      const Taps columns = taps_at(conv.columns, v);
      const int8_t* const top = image + columns.in * packed.steps.x_pixel;
      for (int32_t h = 0; h < axis.out;) {
        const int8_t* x = top + h * axis.stride * line;
        run.x_step = axis.stride * line;
        run.count = 0;
        if (packed.in_bytes != 0) {
          // Whole vectors are read, but none beyond the image.
          run.count = axis.out - h;
          while (run.count > 0 &&
                 end - x < (run.count - 1) * run.x_step + conv.depth) {
            --run.count;
          }
        }
        if (run.count == 0) {
          run.count = axis.out - h;
          if (run.count > packed.pixels) run.count = packed.pixels;
          x = strip;
          if (joined) {
            run.x_step = axis.stride * width;
            axis.kernel = (run.count - 1) * axis.stride + conv.rows.kernel;
            gather_lines<kBand>(conv, top, columns, axis, h, strip, to,
                                axis.kernel * width);
          } else {
            run.x_step = axis.kernel * width;
            for (int32_t i = 0; i < run.count; ++i) {
              gather_lines<kBand>(conv, top, columns, axis, h + i,
                                  strip + i * run.x_step, to, run.x_step);
            }
          }
        }
        if constexpr (kBand) {
          const int32_t odd = run.count & 1;
          run.count -= odd;
          if (run.count != 0) {
            kLoop(x, tiles, to_column + h * run.y_step, &run);
            h += run.count;
          }
          if (odd == 0) continue;
          orch_packed_one_pixel(x + run.count * run.x_step, tiles,
                                to_column + h * run.y_step, &run);
          ++h;
        } else {
          kLoop(x, tiles, to_column + h * run.y_step, &run);
          h += run.count;
        }
      }
      to_column += packed.steps.y_pixel;
    }
    y += packed.y_image;
    image += conv.rows.in * line;
  }
}

/// Computes all phases. Which loop is no argument: whatever has a pointer could
/// then be called, as far as bounds on the stack know.
template <PixelLoop& kLoop, bool kBand = false>
void compute_phases(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const uint8_t* packed = static_cast<const uint8_t*>(call.header);
  const uint8_t* tiles = static_cast<const uint8_t*>(call.weights);
  const PackedPixels* phase;
  do {
    phase = reinterpret_cast<const PackedPixels*>(packed);
    if (call.weights == nullptr) tiles = packed + sizeof *phase;
    compute_columns<kLoop, kBand>(
        *phase, static_cast<const int8_t*>(call.input), tiles,
        static_cast<int8_t*>(call.scratch), static_cast<int8_t*>(call.out));
    packed += phase->next;
  } while (phase->next != 0);
}

}  // namespace

// What the build makes of cortex_m::quantized_conv2d.out and others: (Tensor
//   input, Tensor header, Tensor weights, Tensor scratch, *, Tensor(a!) out) ->
//   Tensor(a!)
//
// `header` is a PackedPixels, `weights` tiles of four channels; several have
// both in `header`, one after the other, and no `weights`. `scratch` has room
// for what some pixels see, and for a vector more. The build has checked
// everything.
//
// Bands have few pixels, and strips of their own.
#define ORCH_PIXELS(name, limited, loop)                              \
  void name(const PreparedCall& call) { compute_phases<loop>(call); } \
  ORCH_PACKED_FORMS(PackedPixels, name, limited)                      \
  void name##_band(const PreparedCall& call) {                        \
    compute_phases<loop, true>(call);                                 \
  }                                                                   \
  ORCH_LIMITED_BAND(PackedPixels, name##_band, limited##_band)

ORCH_PIXELS(packed_pixels, limited_packed_pixels, compute_pixels)
#define ORCH_UNROLLED_PIXELS(vectors)                                   \
  ORCH_PIXELS(packed_pixels_##vectors, limited_packed_pixels_##vectors, \
              orch_packed_pixels_##vectors)
ORCH_UNROLLED(ORCH_UNROLLED_PIXELS)

// The same of a single pixel, as in a matrix product of one row: `header` is a
// PackedPixel, `weights` tiles of eight channels.
ORCH_HOT void packed_pixel(const PreparedCall& prepared) {
  const PackedCall& call = static_cast<const PackedCall&>(prepared);
  const PackedPixel& pixel = *static_cast<const PackedPixel*>(call.header);
  orch_packed_pixel(whole_vectors(call, pixel.conv),
                    static_cast<const uint8_t*>(call.weights),
                    static_cast<int8_t*>(call.out), &pixel);
}
ORCH_PACKED_FORMS(PackedPixel, packed_pixel, limited_packed_pixel)

}  // namespace orch::cortex_m

#endif
