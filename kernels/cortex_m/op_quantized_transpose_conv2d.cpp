#include "image.h"
#include "isa.h"
#include "orch/kernel.h"
#include "transposed.h"
#include "util/check.h"
#include "util/scratch.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "areas_mve.h"
#else
#include "tile.h"
#endif

namespace orch::cortex_m {
namespace {

struct Transposed : TransposedSizes {
  const int8_t* x;
  const int8_t* w;      // [out, H, W, in]
  const int32_t* bias;  // per output channel, or null
  int8_t* y;
  Output to;
};

/// Reads the parameters and checks them against the tensors; gives `out` its
/// sizes.
__attribute__((noinline)) Error prepare(const Args& args, Layout layout,
                                        Transposed& conv) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  const Tensor& multipliers = args.tensor(9);
  const Tensor& shifts = args.tensor(10);
  Tensor& out = args.tensor(15);

  ORCH_TRY(read_image(input, layout, conv.in));
  Image filter;
  ORCH_TRY(read_image(weight, Layout::kNhwc, filter));
  int32_t stride[2];
  int32_t padding[2];
  int32_t output_padding[2];
  int32_t dilation[2];
  ORCH_TRY(read_ints(args.int_list(3), 2, 1, stride));
  ORCH_TRY(read_ints(args.int_list(4), 2, 0, padding));
  ORCH_TRY(read_ints(args.int_list(5), 2, 0, output_padding));
  ORCH_TRY(read_ints(args.int_list(6), 2, 1, dilation));
  const int32_t outputs = filter.batch;
  ORCH_CHECK(weight.numel() > 0 && filter.channels == conv.in.channels,
             Error::InvalidArgument);
  ORCH_TRY(
      read_channels(bias, multipliers, shifts, outputs, conv.bias, conv.to));
  ORCH_TRY(read_offset(args, 7, conv.x_offset));
  ORCH_TRY(read_item(args, 8, conv.to.offset));
  ORCH_TRY(read_range(args, 11, 12, conv.to.range));
  ORCH_TRY(set_transposed_output(
      {conv.in.height, 0, filter.height, stride[0], padding[0], dilation[0]},
      output_padding[0], conv.rows));
  ORCH_TRY(set_transposed_output(
      {conv.in.width, 0, filter.width, stride[1], padding[1], dilation[1]},
      output_padding[1], conv.columns));
  conv.out = {conv.in.batch, conv.rows.axis.out, conv.columns.axis.out,
              outputs};
  ORCH_TRY_DATA(check_scratch(args.tensor(13), 0));
  ORCH_TRY_DATA(check_scratch(args.tensor(14), 0));
  ORCH_TRY(
      resize_image(out, layout, conv.out, input, weight, multipliers, shifts));

  conv.x = input.data<int8_t>();
  conv.w = weight.data<int8_t>();
  conv.y = out.mutable_data<int8_t>();
  return Error::Ok;
}

#if ORCH_ISA == ORCH_ISA_MVE
/// Outputs of a phase from the `index`-th on with the same taps, at least one;
/// the first one's. `first`: of the phase.
int32_t find_same(const TransposedAxis& axis, int32_t first, int32_t index,
                  Taps& taps) {
  const Phase phase = phase_at(axis, first);
  taps = taps_at(axis, phase, index);
  int32_t count = 1;
  for (; first + (index + count) * axis.axis.stride < axis.axis.out; ++count) {
    const Taps next = taps_at(axis, phase, index + count);
    if (next.first != taps.first || next.count != taps.count) break;
  }
  return count;
}

/// Calls fn(output, count, taps) for all outputs of an axis that are `stride`
/// apart and have the same taps.
template <typename Fn>
ORCH_ALWAYS_INLINE void for_each_same(const TransposedAxis& axis,
                                      const Fn& fn) {
  for (int32_t first = 0; first < phase_count(axis); ++first) {
    int32_t index = 0;
    for (int32_t o = first; o < axis.axis.out;
         o = first + index * axis.axis.stride) {
      Taps taps;
      const int32_t count = find_same(axis, first, index, taps);
      fn(o, count, taps);
      index += count;
    }
  }
}

/// All pixels.
void compute_images(const Transposed& given) {
  const TransposedAxis& by_row = given.rows;
  const TransposedAxis& by_column = given.columns;
  const int32_t depth = given.in.channels;
  const int32_t outputs = given.out.channels;
  Convolution conv;
  conv.in = given.in;
  conv.out = given.out;
  conv.rows = by_row.axis;
  conv.columns = by_column.axis;
  conv.group_channels = depth;
  conv.group_outputs = outputs;
  conv.x_offset = given.x_offset;
  conv.w_offset = 0;
  conv.w = given.w;
  conv.bias = given.bias;
  conv.to = given.to;
  const Areas areas(conv);
  const int32_t x_line = given.in.width * depth;
  const int32_t y_line = given.out.width * outputs;
  // Along the taps of an output its inputs go backwards.
  const int32_t x_up = wrapping_product(-by_row.in_step, x_line);
  const int32_t w_down =
      wrapping_product(by_row.tap_step, conv.columns.kernel * depth);
  Area area;
  area.x_row = x_line;
  area.x_column = depth;
  area.y_row = wrapping_product(conv.rows.stride, y_line);
  area.y_column = wrapping_product(conv.columns.stride, outputs);
  for (int32_t n = 0; n < given.out.batch; ++n) {
    const int8_t* const x = given.x + n * given.in.height * x_line;
    int8_t* const y = given.y + n * given.out.height * y_line;
    for_each_same(by_row, [&](int32_t h, int32_t row_count, const Taps& rows) {
      area.rows = row_count;
      for_each_same(by_column, [&](int32_t v, int32_t count, const Taps& taps) {
        area.columns = count;
        area.x = x + (rows.in * x_line + taps.in * depth);
        area.y = y + (h * y_line + v * outputs);
        area.w = (rows.first * conv.columns.kernel + taps.first) * depth;
        if (taps.count <= 1 || rows.count == 0) {
          area.runs = runs_of(depth, taps.count * rows.count, x_up, w_down);
          area.groups = 1;
        } else {
          area.runs = runs_of(depth, taps.count,
                              wrapping_product(-by_column.in_step, depth),
                              wrapping_product(by_column.tap_step, depth));
          area.groups = rows.count;
          area.x_group = x_up;
          area.w_group = w_down;
        }
        areas.compute(area);
      });
    });
  }
}
#else
/// One row of the output.
///
/// x: of the first row of taps; w: of the same row, of the first channel.
void compute_row(const Transposed& conv, Block& block, const int8_t* x,
                 const int8_t* w, int8_t* y) {
  const TransposedAxis& axis = conv.columns;
  for (int32_t first = 0; first < phase_count(axis); ++first) {
    const Phase phase = phase_at(axis, first);
    int32_t index = 0;
    for (int32_t v = first; v < conv.out.width;) {
      const Taps columns = taps_at(axis, phase, index);
      block.patch.columns = columns.count;
      block.x = x + columns.in * conv.in.channels;
      block.w = w + columns.first * conv.in.channels;
      block.y = y + v * conv.out.channels;
      // All taps of the first and of the last pixel.
      const int32_t more = kWidePixels - 1;
      const bool wide = (!block.pairs || kHasWidePairs) &&
                        columns.count == phase.count &&
                        (conv.out.width - 1 - v) / axis.axis.stride >= more &&
                        taps_at(axis, phase, index + more).count == phase.count;
      block.pixels = wide ? kWidePixels : 1;
      compute(block);
      index += block.pixels;
      v += block.pixels * axis.axis.stride;
    }
  }
}

/// All pixels.
void compute_images(Transposed& conv) {
  const int32_t depth = conv.in.channels;
  const int32_t x_line = conv.in.width * depth;
  const int32_t y_line = conv.out.width * conv.out.channels;
  Block block = {};
  Patch& patch = block.patch;
  // Along the taps of an output its inputs go backwards.
  const int32_t w_line = conv.columns.axis.kernel * depth;
  patch.items = depth;
  patch.x_row = wrapping_product(-conv.rows.in_step, x_line);
  patch.x_column = wrapping_product(-conv.columns.in_step, depth);
  patch.w_row = wrapping_product(conv.rows.tap_step, w_line);
  patch.w_column = wrapping_product(conv.columns.tap_step, depth);
  patch.x_step = depth;
  patch.w_channel = conv.rows.axis.kernel * w_line;
  patch.x_offset = conv.x_offset;
  block.y_step = wrapping_product(conv.columns.axis.stride, conv.out.channels);
  block.pairs = prefers_pairs(depth, conv.out.channels);
  block.end = conv.out.channels;
  block.bias = conv.bias;
  block.to = &conv.to;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t first = 0; first < phase_count(conv.rows); ++first) {
      const Phase phase = phase_at(conv.rows, first);
      int32_t index = 0;
      for (int32_t h = first; h < conv.out.height; h += conv.rows.axis.stride) {
        const Taps rows = taps_at(conv.rows, phase, index++);
        patch.rows = rows.count;
        compute_row(conv, block, conv.x + rows.in * x_line,
                    conv.w + rows.first * w_line, conv.y + h * y_line);
      }
    }
    conv.x += conv.in.height * x_line;
    conv.y += conv.out.height * y_line;
  }
}
#endif

Error run(const Args& args, Layout layout) {
  Transposed conv;
  ORCH_TRY(prepare(args, layout, conv));
  compute_images(conv);
  return Error::Ok;
}

}  // namespace

// cortex_m::quantized_transpose_conv2d.out(Tensor input, Tensor weight,
//   Tensor? bias, int[] stride, int[] padding, int[] output_padding,
//   int[] dilation, int input_offset, int output_offset,
//   Tensor requantize_multipliers, Tensor requantize_shifts,
//   int activation_min, int activation_max, Tensor scratch,
//   Tensor output_scratch, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_transpose_conv2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_transpose_conv2d_nhwc.out: the same arguments; images
//   have sizes [N, H, W, C].
Error quantized_transpose_conv2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

void quantized_transpose_conv2d(const PreparedCall& prepared) {
  const auto& call = static_cast<const TransposedCall&>(prepared);
  Transposed conv = {
      call.sizes,
      static_cast<const int8_t*>(call.input),
      static_cast<const int8_t*>(call.weights),
      static_cast<const int32_t*>(call.bias),
      static_cast<int8_t*>(call.out),
      {static_cast<const int32_t*>(call.multipliers),
       static_cast<const int32_t*>(call.shifts), 1, call.offset, call.range}};
  compute_images(conv);
}

}  // namespace orch::cortex_m
