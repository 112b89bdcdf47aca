// Tensors of images, seen with four dimensions.
#pragma once

#include "orch/tensor.h"
#include "util/types.h"

namespace orch {

/// Sizes and strides of a tensor as [N, C, H, W].
struct Planes {
  int32_t size[4];
  int32_t stride[4];
  int32_t depth_stride = 0;

  /// A tensor of rank 4; one of rank 3 with a dimension of size 1 added at
  /// index `missing`: 0 for [C, H, W], 2 for [N, C, W]; the first image of each
  /// volume of [N, C, D, H, W].
  __attribute__((noinline)) Planes(const Tensor& tensor, int missing) {
    const Strides strides(tensor);
    for (int i = 0, d = 0; i < 4; ++i) {
      if (tensor.dim == 3 && i == missing) {
        size[i] = 1;
        stride[i] = 0;
      } else {
        if (tensor.dim == 5 && i == 2) depth_stride = strides[d++];
        size[i] = tensor.size(d);
        stride[i] = strides[d++];
      }
    }
  }
};

/// `sum` divided by `divisor`; integers, signed, truncate and wrap around.
template <typename C>
C divide(C sum, C divisor) {
  if constexpr (kIsSame<C, uint64_t>) {
    const int64_t by = static_cast<int64_t>(divisor);
    if (by == -1) return 0 - sum;
    return static_cast<C>(static_cast<int64_t>(sum) / by);
  } else {
    return sum / divisor;
  }
}

}  // namespace orch
