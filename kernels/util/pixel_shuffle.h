// Channels that are the pixels of blocks of a larger image.
#pragma once

#include <stdint.h>

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

/// Copies between two images of last dimensions [C * factor * factor, H, W] and
/// [C, H * factor, W * factor]: `wide`, the output is the latter. Trusts that
/// the sizes agree.
__attribute__((noinline)) inline void move_blocks(const Tensor& self,
                                                  Tensor& out, int32_t factor,
                                                  bool wide) {
  if (out.numel() == 0) return;
  const int channel = out.dim - 3;
  const Tensor& small = wide ? self : out;
  ItemView own = items_of(self);
  ItemView to = items_of(out);
  ItemView& many = wide ? own : to;  // channels
  ItemView& large = wide ? to : own;
  const int32_t next_channel = many.stride[channel];
  const int32_t next_row = large.stride[channel + 1];
  const int32_t next_column = large.stride[channel + 2];
  int32_t sizes[kMaxDim];
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
}

}  // namespace orch
