// Sums of products of int16 items and int8 weights over images.
#pragma once

#include <stdint.h>

#include "image.h"
#include "scale.h"

namespace orch::cortex_m_int16 {

/// Products of which 32 bits certainly hold the sum: each has at most 2^22.
inline constexpr int32_t kMostProducts = 511;

/// Numbers that are added to sums, one for each output channel.
struct Bias {
  const void* items;  // or null
  bool is_long;

  int64_t of(int32_t channel) const {
    if (items == nullptr) return 0;
    return is_long ? static_cast<const int64_t*>(items)[channel]
                   : static_cast<const int32_t*>(items)[channel];
  }
};

/// A convolution of NHWC images with OHWI weights; those of a depthwise one are
/// [1, H, W, out].
struct Convolution : cortex_m::ConvolutionSizes {
  const int16_t* x;
  const int8_t* w;
  Bias bias;
  const int32_t* multipliers;  // per output channel
  const int32_t* shifts;
  int32_t scale_step;  // 1, or 0 if one scale stands for all channels
  Range range;
  int16_t* y;

  Scale scale_of(int32_t channel) const {
    const int32_t at = channel * scale_step;
    return {multipliers[at], shifts[at]};
  }

  /// What is stored for a sum without its bias.
  __attribute__((noinline)) int16_t any_item(int64_t sum,
                                             int32_t channel) const {
    return static_cast<int16_t>(
        scaled(sum + bias.of(channel), scale_of(channel), range));
  }

  /// The same, fast for sums that 32 bits hold with their bias.
  ORCH_ALWAYS_INLINE int16_t item(int32_t sum, int32_t channel) const {
    const Scale scale = scale_of(channel);
    if (__builtin_expect(!bias.is_long && is_fast(scale.shift), 1)) {
      const int32_t* const biases = static_cast<const int32_t*>(bias.items);
      const int32_t more = biases == nullptr ? 0 : biases[channel];
      int32_t total;
      if (__builtin_expect(!__builtin_add_overflow(sum, more, &total), 1)) {
        return static_cast<int16_t>(
            cortex_m::clamp(scaled_fast(total, scale), range));
      }
    }
    return any_item(sum, channel);
  }
};

/// Reads the bias of `count` channels, which may be null. Errors:
/// InvalidArgument.
inline Error read_bias(const Tensor* bias, int32_t count, Bias& to) {
  to = {nullptr, false};
  if (bias == nullptr) return Error::Ok;
  to.is_long = bias->dtype == ScalarType::Long;
  to.items = bias->memory;
  ORCH_CHECK(
      (to.is_long || bias->dtype == ScalarType::Int) && bias->numel() == count,
      Error::InvalidArgument);
  return Error::Ok;
}

/// Which operator the arguments are of.
enum class Kind : uint8_t { kConvolution, kDepthwise };

/// Reads the parameters and checks them against the tensors; gives the output
/// its sizes. Errors: InvalidArgument, NotSupported, those of `resize`.
Error prepare(const Args& args, Kind kind, Convolution& conv);

/// y = scaled(bias + sum of x * w).
void convolve(const Convolution& conv);

/// The same of a depthwise one.
void convolve_depthwise(const Convolution& conv);

/// What `convolve` does of matrices: x of [rows, depth], w of [columns, depth],
/// y of [rows, columns]; both have dense rows.
void multiply(Convolution& conv, int32_t rows, int32_t depth, int32_t columns);

}  // namespace orch::cortex_m_int16
