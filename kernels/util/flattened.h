// Tensors as one row of items, whatever their sizes.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "orch/tensor.h"

namespace orch {

/// Where the item at an index of the flattened tensor lies, in items.
inline int32_t item_offset(const Tensor& tensor, const Strides& strides,
                           int32_t index) {
  int32_t offset = 0;
  for (int i = tensor.dim; i-- > 0;) {
    const int32_t size = tensor.size(i);
    offset += index % size * strides[i];
    index /= size;
  }
  return offset;
}

/// Copies all items, seen as one row, to `shift` items further on; those that
/// pass the end go to the beginning. Trusts that both tensors have the same
/// dtype and number of items, and that `shift` is less than that, or 0.
/// Inlined, as most kernels have no shift.
__attribute__((always_inline)) inline void move_flattened(Tensor& out,
                                                          const Tensor& self,
                                                          int32_t shift) {
  const size_t item = item_bytes(out.dtype);
  const int32_t count = out.numel();
  if (count == 0) return;
  uint8_t* const targets = out.mutable_data<uint8_t>();
  const uint8_t* const sources = self.data<uint8_t>();
  if (self.contiguous() && out.contiguous()) {
    const size_t begin = static_cast<size_t>(shift) * item;
    const size_t rest = static_cast<size_t>(count - shift) * item;
    memmove(targets + begin, sources, rest);
    memmove(targets, sources + rest, begin);
    return;
  }
  const Strides from(self);
  const Strides to(out);
  for (int32_t i = 0; i < count; ++i) {
    const int32_t end = count - shift;
    const int32_t at = i < end ? i + shift : i - end;
    const size_t source = static_cast<size_t>(item_offset(self, from, i));
    const size_t target = static_cast<size_t>(item_offset(out, to, at));
    memmove(targets + target * item, sources + source * item, item);
  }
}

}  // namespace orch
