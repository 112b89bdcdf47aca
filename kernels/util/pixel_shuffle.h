// Channels that are the pixels of blocks of a larger image.
#pragma once

#include <stdint.h>

#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch {

/// Multiplies a size. Errors: ShapeTooLarge.
inline Error enlarge(int32_t& size, int32_t factor) {
  const int64_t wide = int64_t{size} * factor;
  ORCH_CHECK(wide <= INT32_MAX, Error::ShapeTooLarge);
  size = static_cast<int32_t>(wide);
  return Error::Ok;
}

/// aten::pixel_shuffle.out(Tensor self, int upscale_factor, *, Tensor(a!) out)
/// aten::pixel_unshuffle.out(Tensor self, int downscale_factor, *,
///   Tensor(a!) out)
///
/// Copies between two images of last dimensions [C * factor * factor, H, W] and
/// [C, H * factor, W * factor]; kWide: the output is the latter. Errors:
/// InvalidArgument, ShapeTooLarge.
template <bool kWide>
Error shuffle_pixels(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  int32_t factor = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim >= 3, Error::InvalidArgument);
  ORCH_TRY(read_int(args.integer(1), 1, factor));
  const int channel = self.dim - 3;
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  for (int i = 1; i < 3; ++i) {
    int32_t& fewer = sizes[kWide ? channel : channel + i];
    ORCH_CHECK(fewer % factor == 0, Error::InvalidArgument);
    fewer /= factor;
    ORCH_TRY(enlarge(sizes[kWide ? channel + i : channel], factor));
  }
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
  if (out.numel() == 0) return Error::Ok;
  ItemView own = items_of(self);
  ItemView to = items_of(out);
  ItemView& many = kWide ? own : to;  // channels
  ItemView& large = kWide ? to : own;
  const int32_t next_channel = many.stride[channel];
  const int32_t next_row = large.stride[channel + 1];
  const int32_t next_column = large.stride[channel + 2];
  const Tensor& small = kWide ? self : out;
  for (int i = 0; i < out.dim; ++i) sizes[i] = small.size(i);
  sizes[channel] /= factor * factor;
  many.stride[channel] *= factor * factor;
  large.stride[channel + 1] *= factor;
  large.stride[channel + 2] *= factor;
  // All pixels that have one place in their blocks at a time: long rows.
  for (int32_t row = 0; row < factor; ++row) {
    for (int32_t column = 0; column < factor; ++column) {
      large.offset = row * next_row + column * next_column;
      move_between(out, to.offset, to.stride, sizes, self.memory, own);
      many.offset += next_channel;
    }
  }
  return Error::Ok;
}

}  // namespace orch
