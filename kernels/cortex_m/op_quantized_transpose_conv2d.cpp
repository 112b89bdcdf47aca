#include "image.h"
#include "orch/kernel.h"
#include "tile.h"
#include "transposed.h"
#include "unroll.h"
#include "util/check.h"
#include "util/scratch.h"

namespace orch::cortex_m {
namespace {

struct Transposed {
  Image in;
  Image out;
  TransposedAxis rows;
  TransposedAxis columns;
  int32_t x_offset;
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
  ORCH_CHECK(is_per_channel(multipliers, outputs) &&
                 is_per_channel(shifts, outputs) &&
                 (bias == nullptr || is_per_channel(*bias, outputs)),
             Error::InvalidArgument);
  ORCH_TRY(read_offset(args.integer(7), conv.x_offset));
  ORCH_TRY(read_between(args.integer(8), -128, 127, conv.to.offset));
  ORCH_TRY(read_range(args.integer(11), args.integer(12), conv.to.range));
  ORCH_TRY(set_transposed_output(
      {conv.in.height, 0, filter.height, stride[0], padding[0], dilation[0]},
      output_padding[0], conv.rows));
  ORCH_TRY(set_transposed_output(
      {conv.in.width, 0, filter.width, stride[1], padding[1], dilation[1]},
      output_padding[1], conv.columns));
  conv.out = {conv.in.batch, conv.rows.axis.out, conv.columns.axis.out,
              outputs};
  ORCH_TRY(check_scratch(args.tensor(13), 0));
  ORCH_TRY(check_scratch(args.tensor(14), 0));
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

/// Pixels of one phase that see the same taps.
struct Block {
  Taps rows;
  Taps columns;
  const int8_t* x;  // the first pixel's first tap
  int8_t* y;
};

class Pixels {
 public:
  explicit Pixels(const Transposed& conv)
      : conv_(conv),
        depth_(conv.in.channels),
        x_row_(wrapping_product(conv.rows.in_step, conv.in.width * depth_)),
        x_column_(wrapping_product(conv.columns.in_step, depth_)),
        w_row_(conv.columns.axis.kernel * depth_),
        y_step_(wrapping_product(conv.columns.axis.stride, conv.out.channels)) {
  }

  /// All output channels of kPixels pixels.
  template <int kPixels, int kChannels>
  ORCH_ALWAYS_INLINE void compute(const Block& block) const {
    for (int32_t c = 0; c < conv_.out.channels;) {
      // Of a tile that is not full every channel is the first one.
      const int32_t channels =
          c + kChannels <= conv_.out.channels ? kChannels : 1;
      compute_tile<kPixels, kChannels>(block, c, channels);
      c += channels;
    }
  }

 private:
  template <int kPixels, int kChannels>
  ORCH_ALWAYS_INLINE void compute_tile(const Block& block, int32_t c,
                                       int32_t channels) const {
    int32_t sums[kPixels][kChannels];
    unrolled<kChannels>([&](auto i) {
      const bool has_bias = conv_.bias != nullptr && i < channels;
      const int32_t bias = has_bias ? conv_.bias[c + i] : 0;
      unrolled<kPixels>([&](auto p) { sums[p][i] = bias; });
    });
    const int32_t filter_items = conv_.rows.axis.kernel * w_row_;
    const int32_t w_step = channels == kChannels ? filter_items : 0;
    const int8_t* w_row = conv_.w + c * filter_items +
                          block.rows.first * w_row_ +
                          block.columns.first * depth_;
    for (int32_t i = 0; i < block.rows.count; ++i) {
      for (int32_t j = 0; j < block.columns.count; ++j) {
        const int32_t at = i * conv_.rows.tap_step * w_row_ +
                           j * conv_.columns.tap_step * depth_;
        accumulate({block.x - (i * x_row_ + j * x_column_), w_row + at, depth_,
                    w_step, depth_, conv_.x_offset},
                   sums);
      }
    }
    unrolled<kChannels>([&](auto i) {
      if (i >= channels) return;
      int8_t* y = block.y + c + i;
      unrolled<kPixels>(
          [&](auto p) { y[p * y_step_] = conv_.to.item(sums[p][i], c + i); });
    });
  }

  const Transposed& conv_;
  int32_t depth_;
  int32_t x_row_;
  int32_t x_column_;
  int32_t w_row_;
  int32_t y_step_;
};

/// One row of the output.
void compute_row(const Transposed& conv, const Pixels& pixels, Block block,
                 const int8_t* x, int8_t* y) {
  const TransposedAxis& axis = conv.columns;
  for (int32_t first = 0; first < phase_count(axis); ++first) {
    const Phase phase = phase_at(axis, first);
    int32_t index = 0;
    for (int32_t v = first; v < conv.out.width;) {
      block.columns = taps_at(axis, phase, index);
      block.x = x + block.columns.in * conv.in.channels;
      block.y = y + v * conv.out.channels;
      // All taps of the first and of the last pixel.
      const int32_t more = kWidePixels - 1;
      const bool wide = block.columns.count == phase.count &&
                        (conv.out.width - 1 - v) / axis.axis.stride >= more &&
                        taps_at(axis, phase, index + more).count == phase.count;
      if (wide) {
        pixels.compute<kWidePixels, kWideChannels>(block);
      } else {
        pixels.compute<1, kNarrowChannels>(block);
      }
      const int32_t count = wide ? kWidePixels : 1;
      index += count;
      v += count * axis.axis.stride;
    }
  }
}

Error run(const Args& args, Layout layout) {
  Transposed conv;
  ORCH_TRY(prepare(args, layout, conv));
  const Pixels pixels(conv);
  const int32_t x_line = conv.in.width * conv.in.channels;
  const int32_t y_line = conv.out.width * conv.out.channels;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t first = 0; first < phase_count(conv.rows); ++first) {
      const Phase phase = phase_at(conv.rows, first);
      int32_t index = 0;
      for (int32_t h = first; h < conv.out.height; h += conv.rows.axis.stride) {
        Block block = {};
        block.rows = taps_at(conv.rows, phase, index++);
        compute_row(conv, pixels, block, conv.x + block.rows.in * x_line,
                    conv.y + h * y_line);
      }
    }
    conv.x += conv.in.height * x_line;
    conv.y += conv.out.height * y_line;
  }
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

}  // namespace orch::cortex_m
