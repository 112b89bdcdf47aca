// Arguments of int8 operators on images: sizes, parameters, scales.
#pragma once

#include <stdint.h>

#include "orch/kernel.h"
#include "prepared.h"
#include "requantize.h"
#include "unroll.h"
#include "util/check.h"

namespace orch::cortex_m {

/// How an operator's tensors name the dimensions of an image.
enum class Layout : uint8_t {
  kChannelsLast,  // sizes [N, C, H, W], dim order 0, 2, 3, 1
  kNhwc,          // sizes [N, H, W, C], contiguous
};

/// The dimensions of an image as its memory has them, if it is NHWC.
struct ImageDims {
  explicit ImageDims(Layout layout) {
    if (layout == Layout::kNhwc) return;
    at[1] = 2;
    at[2] = 3;
    at[3] = 1;
  }
  /// Whether a tensor of rank 4 lies that way. Where a dimension has size 1,
  /// its stride means nothing.
  bool fit(const Tensor& tensor) const {
    const Strides strides(tensor);
    int32_t stride = 1;
    for (int i = 3; i >= 0; --i) {
      const int32_t size = tensor.size(at[i]);
      if (size > 1 && strides[at[i]] != stride) return false;
      stride *= size;
    }
    return true;
  }

  int at[4] = {0, 1, 2, 3};
};

/// The sizes of an image. Errors: InvalidArgument (no int8, not of rank 4),
/// NotSupported (the memory is not NHWC).
__attribute__((noinline)) inline Error read_image(const Tensor& tensor,
                                                  Layout layout, Image& image) {
  ORCH_CHECK(tensor.dtype == ScalarType::Char && tensor.dim == 4,
             Error::InvalidArgument);
  const ImageDims dims(layout);
  ORCH_CHECK(dims.fit(tensor), Error::NotSupported);
  image = {tensor.size(dims.at[0]), tensor.size(dims.at[1]),
           tensor.size(dims.at[2]), tensor.size(dims.at[3])};
  return Error::Ok;
}

/// Gives `out` the sizes of an image. Errors: those of `resize_output` and of
/// `read_image`.
template <typename... Tensors>
Error resize_image(Tensor& out, Layout layout, const Image& image,
                   const Tensors&... inputs) {
  // Inputs matter only where sizes change.
  if constexpr (!kDynamicSizes && sizeof...(Tensors) != 0) {
    return resize_image(out, layout, image);
  }
  const bool nhwc = layout == Layout::kNhwc;
  const int32_t sizes[4] = {image.batch, nhwc ? image.height : image.channels,
                            nhwc ? image.width : image.height,
                            nhwc ? image.channels : image.width};
  ORCH_TRY(resize_output(out, {sizes, 4}, inputs...));
  Image written;
  return read_image(out, layout, written);
}

/// Reads `int[] stride, int[] padding`, arguments from `first` on, and, if
/// there are three lists, `int[] dilation`, for axes that have their kernels.
/// Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_axes(const Args& args, int first,
                                                 int lists, const Image& in,
                                                 Axis& rows, Axis& columns) {
  int32_t values[3][2] = {{}, {}, {1, 1}};
  for (int i = 0; i < lists; ++i) {
    const int32_t low = i == 1 ? 0 : 1;
    ORCH_TRY(read_ints(args.int_list(first + i), 2, low, values[i]));
  }
  rows = {in.height, 0, rows.kernel, values[0][0], values[1][0], values[2][0]};
  columns = {in.width,     0,           columns.kernel, values[0][1],
             values[1][1], values[2][1]};
  return Error::Ok;
}

/// The taps of a window that lie in the input.
struct Taps {
  int32_t first;
  int32_t count;
  int32_t in;  // where the first one is
};

/// Taps of a window that begins at `in`.
ORCH_ALWAYS_INLINE Taps taps_from(const Axis& axis, int32_t in) {
  Taps taps = {0, axis.kernel, in};
  ORCH_FEW_ROUNDS
  while (taps.count > 0 && taps.in < 0) {
    taps.in += axis.dilation;
    ++taps.first;
    --taps.count;
  }
  ORCH_FEW_ROUNDS
  while (taps.count > 0 &&
         taps.in + (taps.count - 1) * axis.dilation >= axis.in) {
    --taps.count;
  }
  if (taps.count == 0) taps.in = 0;
  return taps;
}

/// Taps of output `o`.
__attribute__((noinline)) inline Taps taps_at(const Axis& axis, int32_t o) {
  return taps_from(axis, o * axis.stride - axis.padding);
}

/// Finds the size of the output along one axis. Errors: InvalidArgument.
__attribute__((noinline)) inline Error set_output(Axis& axis) {
  const int64_t window = int64_t{axis.dilation} * (axis.kernel - 1) + 1;
  const int64_t padded = axis.in + 2 * int64_t{axis.padding};
  ORCH_CHECK(padded >= window && padded <= kMaxExtent, Error::InvalidArgument);
  axis.out = static_cast<int32_t>(padded - window) / axis.stride + 1;
  return Error::Ok;
}

/// a * b where it fits 32 bits; anything else is not used.
inline int32_t wrapping_product(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) *
                              static_cast<uint32_t>(b));
}

/// Argument `index`, an integer between two limits. Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_between(const Args& args, int index,
                                                    int32_t low, int32_t high,
                                                    int32_t& out) {
  const int64_t value = args.integer(index);
  out = static_cast<int32_t>(value);
  ORCH_CHECK(out == value && out >= low && out <= high, Error::InvalidArgument);
  return Error::Ok;
}

/// The first of a list of integers, argument `index`, which must fit 32 bits.
/// Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_first(const Args& args, int index,
                                                  int32_t& out) {
  const IntList list = args.int_list(index);
  ORCH_CHECK(list.size() > 0, Error::InvalidArgument);
  out = static_cast<int32_t>(list[0]);
  ORCH_CHECK(out == list[0], Error::InvalidArgument);
  return Error::Ok;
}

/// What is added to items before they are multiplied: -zero point. Errors:
/// InvalidArgument.
inline Error read_offset(const Args& args, int index, int32_t& out) {
  return read_between(args, index, -128, 128, out);
}

/// An item among the arguments, as zero points are. Errors: InvalidArgument.
inline Error read_item(const Args& args, int index, int32_t& out) {
  return read_between(args, index, -128, 127, out);
}

/// Limits of the output, arguments `low` and `high`. Errors: InvalidArgument.
inline Error read_range(const Args& args, int low, int high, Range& range) {
  ORCH_TRY(read_item(args, low, range.low));
  return read_item(args, high, range.high);
}

/// From 32-bit sums to int8.
struct Output {
  const int32_t* multipliers;  // per output channel
  const int32_t* shifts;
  int32_t step;  // 1, or 0 if one stands for all channels
  int32_t offset;
  Range range;
};

/// Turns the sums of `count` channels from `channel` on into items; those of
/// pixel p are at sums + p * kPixelSums and go to y + p * y_step.
template <int kPixels, int kPixelSums>
ORCH_HOT void finish(const Output& to, const int32_t* sums, int32_t channel,
                     int32_t count, int8_t* y, int32_t y_step) {
  const int32_t* multiplier = to.multipliers + channel * to.step;
  const int32_t* shift = to.shifts + channel * to.step;
  const int32_t step = to.step;
  const int32_t offset = to.offset;
  const bool full = is_full(to.range);
  ORCH_FEW_ROUNDS
  for (const int8_t* const end = y + count; y != end; ++y) {
    int32_t values[kPixels];
    unrolled<kPixels>([&](auto p) { values[p] = sums[p * kPixelSums]; });
    const int32_t by = *multiplier;
    uint32_t right = 0U - static_cast<uint32_t>(*shift);
    if (__builtin_expect(*shift > 0, 0)) {
      stay_branch();
      unrolled<kPixels>(
          [&](auto p) { values[p] = shifted_left(values[p], *shift); });
      right = 0;
    }
    unrolled<kPixels>([&](auto p) {
      const int32_t item = multiply_and_divide(values[p], by, right, offset);
      y[p * y_step] = clamp_item(item, full, to.range);
    });
    multiplier += step;
    shift += step;
    ++sums;
  }
}

/// Whether a tensor holds one Int for each of `count` channels.
__attribute__((noinline)) inline bool is_per_channel(const Tensor& tensor,
                                                     int32_t count) {
  return tensor.dtype == ScalarType::Int && tensor.numel() == count;
}

/// Reads bias, which may be null, multipliers and shifts of `count` channels.
/// Errors: InvalidArgument.
__attribute__((noinline)) inline Error read_channels(
    const Tensor* bias, const Tensor& multipliers, const Tensor& shifts,
    int32_t count, const int32_t*& first, Output& to) {
  ORCH_CHECK(is_per_channel(multipliers, count) &&
                 is_per_channel(shifts, count) &&
                 (bias == nullptr || is_per_channel(*bias, count)),
             Error::InvalidArgument);
  first = bias == nullptr ? nullptr : bias->data<int32_t>();
  to.multipliers = multipliers.data<int32_t>();
  to.shifts = shifts.data<int32_t>();
  to.step = 1;
  for (int32_t c = 0; c < count; ++c) {
    ORCH_CHECK(is_shift(to.shifts[c]), Error::InvalidArgument);
  }
  return Error::Ok;
}

}  // namespace orch::cortex_m
