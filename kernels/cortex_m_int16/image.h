// Arguments of int16 operators on images.
#pragma once

#include <stdint.h>

#include "cortex_m/image.h"
#include "orch/kernel.h"

namespace orch::cortex_m_int16 {

using cortex_m::Image;
using cortex_m::ImageDims;
using cortex_m::Layout;
using cortex_m::Range;
using cortex_m::Taps;
using cortex_m::wrapping_product;

/// Limits of int16.
inline constexpr Range kItems = {INT16_MIN, INT16_MAX};

/// The sizes of an image in channels-last layout. Errors: InvalidArgument (no
/// int16, not of rank 4), NotSupported (another layout).
__attribute__((noinline)) inline Error read_image(const Tensor& tensor,
                                                  Image& image) {
  ORCH_CHECK(tensor.dtype == ScalarType::Short && tensor.dim == 4,
             Error::InvalidArgument);
  const ImageDims dims(Layout::kChannelsLast);
  ORCH_CHECK(dims.fit(tensor), Error::NotSupported);
  image = {tensor.size(0), tensor.size(2), tensor.size(3), tensor.size(1)};
  return Error::Ok;
}

/// Gives `out` the sizes of an image. Errors: those of `resize_output` and of
/// `read_image`.
template <typename... Tensors>
Error resize_image(Tensor& out, const Image& image, const Tensors&... inputs) {
  const int32_t sizes[4] = {image.batch, image.channels, image.height,
                            image.width};
  ORCH_TRY(resize_output(out, {sizes, 4}, inputs...));
  Image written;
  return read_image(out, written);
}

/// Zero points are 0. Errors: InvalidArgument.
inline Error read_zero(const Args& args, int index) {
  ORCH_CHECK(args.integer(index) == 0, Error::InvalidArgument);
  return Error::Ok;
}

/// Limits of the output, arguments `low` and `high`. Errors: InvalidArgument.
inline Error read_limits(const Args& args, int low, int high, Range& range) {
  ORCH_TRY(cortex_m::read_between(args, low, INT16_MIN, INT16_MAX, range.low));
  return cortex_m::read_between(args, high, INT16_MIN, INT16_MAX, range.high);
}

}  // namespace orch::cortex_m_int16
