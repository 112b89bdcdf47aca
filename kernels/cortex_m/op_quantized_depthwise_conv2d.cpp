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

/// The taps of an output pixel that lie in the input, row by row.
class PixelTaps {
 public:
  PixelTaps(const Depthwise& conv, const Taps& rows, const Taps& columns)
      : conv_(&conv),
        columns_(&columns),
        left_(rows.count * columns.count),
        line_(conv.in.width * conv.in.channels),
        row_(rows.in),
        column_(columns.in),
        w_(rows.first * conv.columns.kernel + columns.first) {}

  int32_t left() const { return left_; }

  /// The next ones, as many as fit.
  void fill(TapList& list) {
    Tap* tap = list.at;
    for (; left_ > 0 && tap != list.at + kMostTaps; --left_, ++tap) {
      *tap = {row_ * line_ + column_ * conv_->in.channels,
              (w_ + in_row_) * conv_->out.channels};
      column_ += conv_->columns.dilation;
      if (++in_row_ == columns_->count) {
        in_row_ = 0;
        column_ = columns_->in;
        row_ += conv_->rows.dilation;
        w_ += conv_->columns.kernel;
      }
    }
    list.count = static_cast<int32_t>(tap - list.at);
  }

 private:
  const Depthwise* conv_;
  const Taps* columns_;
  int32_t left_;
  int32_t line_;
  int32_t row_;
  int32_t column_;
  int32_t w_;
  int32_t in_row_ = 0;
};

/// Adds the taps of a list to the sums of `count` channels from `c` on.
ORCH_ALWAYS_INLINE void add_taps(const Depthwise& conv, const TapList& taps,
                                 const int8_t* image, int32_t c, int32_t count,
                                 int32_t* sums) {
  const int8_t* w = conv.w + c;
  const bool full = count % kDepthChannels == 0;
  const int32_t tiles = full ? count / kDepthChannels : count;
  if (conv.multiplier == 1) {
    const int8_t* x = image + c;
    if (full) {
      sum_channels<kDepthChannels, false>(taps, x, w, sums, tiles);
    } else {
      sum_channels<1, false>(taps, x, w, sums, tiles);
    }
  } else {
    const int8_t* x = image + c / conv.multiplier;
    if (full) {
      sum_channels<kDepthChannels, true>(taps, x, w, sums, tiles);
    } else {
      sum_channels<1, true>(taps, x, w, sums, tiles);
    }
  }
}

/// All channels of a pixel.
void compute(const Depthwise& conv, const PixelTaps& all, const int8_t* image,
             TapList& taps, int8_t* y) {
  constexpr int32_t kNothing[1] = {};
  const int32_t outputs = conv.out.channels;
  PixelTaps first = all;
  first.fill(taps);
  for (int32_t c = 0; c < outputs;) {
    // Channels that share their input, or all of them.
    const int32_t m = conv.multiplier;
    const int32_t end = m == 1 ? outputs : (c / m + 1) * m;
    // The last ones that are no full tile are computed one by one.
    int32_t count = end - c;
    if (count > kDepthChannels) count -= count % kDepthChannels;
    if (count > kMostChannels) count = kMostChannels;
    Sums<1> sums;
    start<1>(conv.bias, c, count, kNothing, sums);
    add_taps(conv, taps, image, c, count, sums[0]);
    if (first.left() > 0) {
      PixelTaps more = first;
      while (more.left() > 0) {
        more.fill(taps);
        add_taps(conv, taps, image, c, count, sums[0]);
      }
      more = all;
      more.fill(taps);
    }
    finish<1, kMostChannels>(conv.to, sums[0], c, count, y + c, outputs);
    c += count;
  }
}

void convolve(const Depthwise& conv) {
  const int8_t* image = conv.x;
  int8_t* y = conv.y;
  TapList taps;
  taps.x_offset = conv.x_offset;
  for (int32_t n = 0; n < conv.out.batch; ++n) {
    for (int32_t h = 0; h < conv.out.height; ++h) {
      const Taps rows = taps_at(conv.rows, h);
      for (int32_t v = 0; v < conv.out.width; ++v) {
        const Taps columns = taps_at(conv.columns, v);
        compute(conv, {conv, rows, columns}, image, taps, y);
        y += conv.out.channels;
      }
    }
    image += conv.in.height * conv.in.width * conv.in.channels;
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
