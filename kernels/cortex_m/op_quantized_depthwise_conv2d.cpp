#include "image.h"
#include "orch/kernel.h"
#include "tile.h"
#include "unroll.h"
#include "util/check.h"
#include "util/scratch.h"

namespace orch::cortex_m {
namespace {

struct Depthwise {
  Image in;
  Image out;
  Axis rows;
  Axis columns;
  int32_t multiplier;  // outputs per input channel
  int32_t x_offset;
  const int8_t* x;
  const int8_t* w;      // [1, H, W, out]
  const int32_t* bias;  // per output channel, or null
  int8_t* y;
  Output to;
};

/// Reads the parameters and checks them against the tensors; gives `out` its
/// sizes.
__attribute__((noinline)) Error prepare(const Args& args, Layout layout,
                                        Depthwise& conv) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  const Tensor& multipliers = args.tensor(9);
  const Tensor& shifts = args.tensor(10);
  const Tensor& scratch = args.tensor(13);
  Tensor& out = args.tensor(14);

  ORCH_TRY(read_image(input, layout, conv.in));
  Image filter;
  ORCH_TRY(read_image(weight, Layout::kNhwc, filter));
  int32_t stride[2];
  int32_t padding[2];
  int32_t dilation[2];
  ORCH_TRY(read_ints(args.int_list(3), 2, 1, stride));
  ORCH_TRY(read_ints(args.int_list(4), 2, 0, padding));
  ORCH_TRY(read_ints(args.int_list(5), 2, 1, dilation));
  ORCH_TRY(read_int(args.integer(6), 1, conv.multiplier));
  const int32_t outputs = filter.channels;
  ORCH_CHECK(weight.numel() > 0 && filter.batch == 1 &&
                 int64_t{conv.in.channels} * conv.multiplier == outputs,
             Error::InvalidArgument);
  ORCH_CHECK(is_per_channel(multipliers, outputs) &&
                 is_per_channel(shifts, outputs) &&
                 (bias == nullptr || is_per_channel(*bias, outputs)),
             Error::InvalidArgument);
  ORCH_TRY(read_offset(args.integer(7), conv.x_offset));
  ORCH_TRY(read_between(args.integer(8), -128, 127, conv.to.offset));
  ORCH_TRY(read_range(args.integer(11), args.integer(12), conv.to.range));

  conv.rows = {conv.in.height, 0,          filter.height,
               stride[0],      padding[0], dilation[0]};
  conv.columns = {conv.in.width, 0,          filter.width,
                  stride[1],     padding[1], dilation[1]};
  ORCH_TRY(set_output(conv.rows));
  ORCH_TRY(set_output(conv.columns));
  conv.out = {conv.in.batch, conv.rows.out, conv.columns.out, outputs};
  ORCH_TRY(check_scratch(scratch, 0));
  ORCH_TRY(
      resize_image(out, layout, conv.out, input, weight, multipliers, shifts));
  Image written;
  ORCH_TRY(read_image(out, layout, written));

  conv.x = input.data<int8_t>();
  conv.w = weight.data<int8_t>();
  conv.bias = bias == nullptr ? nullptr : bias->data<int32_t>();
  conv.y = out.mutable_data<int8_t>();
  conv.to.multipliers = multipliers.data<int32_t>();
  conv.to.shifts = shifts.data<int32_t>();
  conv.to.step = 1;
  return Error::Ok;
}

/// kChannels outputs from `channel` on, of kPixels pixels.
template <int kPixels, int kChannels, bool kShared>
ORCH_ALWAYS_INLINE void compute_channels(const Depthwise& conv, Grid grid,
                                         int32_t channel, int8_t* y) {
  int32_t sums[kPixels][kChannels];
  unrolled<kChannels>([&](auto c) {
    const int32_t bias = conv.bias == nullptr ? 0 : conv.bias[channel + c];
    unrolled<kPixels>([&](auto p) { sums[p][c] = bias; });
  });
  grid.w += channel;
  grid.x += kShared ? channel / conv.multiplier : channel;
  accumulate_taps<kPixels, kChannels, kShared>(grid, sums);
  y += channel;
  unrolled<kChannels>([&](auto c) {
    unrolled<kPixels>([&](auto p) {
      y[p * conv.out.channels + c] = conv.to.item(sums[p][c], channel + c);
    });
  });
}

/// All channels of kPixels pixels.
template <int kPixels>
ORCH_ALWAYS_INLINE void compute_pixels(const Depthwise& conv, const Grid& grid,
                                       int8_t* y) {
  const int32_t outputs = conv.out.channels;
  int32_t c = 0;
  if (conv.multiplier == 1) {
    for (; c + kDepthChannels <= outputs; c += kDepthChannels) {
      compute_channels<kPixels, kDepthChannels, false>(conv, grid, c, y);
    }
  } else if (conv.multiplier % kDepthChannels == 0) {
    for (; c < outputs; c += kDepthChannels) {
      compute_channels<kPixels, kDepthChannels, true>(conv, grid, c, y);
    }
  }
  for (; c < outputs; ++c) compute_channels<kPixels, 1, true>(conv, grid, c, y);
}

void convolve(const Depthwise& conv) {
  const int32_t line = conv.in.width * conv.in.channels;
  const int8_t* image = conv.x;
  int8_t* y = conv.y;
  Grid grid = {};
  grid.x_row = wrapping_product(conv.rows.dilation, line);
  grid.x_column = wrapping_product(conv.columns.dilation, conv.in.channels);
  grid.w_row = conv.columns.kernel * conv.out.channels;
  grid.w_column = conv.out.channels;
  grid.x_step = wrapping_product(conv.columns.stride, conv.in.channels);
  grid.x_offset = conv.x_offset;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      grid.rows = rows.count;
      for (int32_t v = 0; v < conv.out.width;) {
        const Taps columns = taps_at(conv.columns, v);
        grid.columns = columns.count;
        grid.x = image + (rows.in * line + columns.in * conv.in.channels);
        grid.w =
            conv.w + (rows.first * grid.w_row + columns.first * grid.w_column);
        const bool wide =
            v + 1 < conv.out.width && columns.first == 0 &&
            taps_at(conv.columns, v + 1).count == conv.columns.kernel;
        if (wide) {
          compute_pixels<2>(conv, grid, y);
        } else {
          compute_pixels<1>(conv, grid, y);
        }
        const int32_t pixels = wide ? 2 : 1;
        v += pixels;
        y += pixels * conv.out.channels;
      }
    }
    image += conv.in.height * line;
  }
}

Error run(const Args& args, Layout layout) {
  Depthwise conv;
  ORCH_TRY(prepare(args, layout, conv));
  convolve(conv);
  return Error::Ok;
}

}  // namespace

// cortex_m::quantized_depthwise_conv2d.out(Tensor input, Tensor weight,
//   Tensor? bias, int[] stride, int[] padding, int[] dilation,
//   int depth_multiplier, int input_offset, int output_offset,
//   Tensor requantize_multipliers, Tensor requantize_shifts,
//   int activation_min, int activation_max, Tensor scratch, *, Tensor(a!) out)
//   -> Tensor(a!)
Error quantized_depthwise_conv2d_out(const Args& args) {
  return run(args, Layout::kChannelsLast);
}

// cortex_m::quantized_depthwise_conv2d_nhwc.out: the same arguments; images
//   have sizes [N, H, W, C].
Error quantized_depthwise_conv2d_nhwc_out(const Args& args) {
  return run(args, Layout::kNhwc);
}

}  // namespace orch::cortex_m
