// Tensors of images, seen with four dimensions.
#pragma once

#include "orch/tensor.h"
#include "util/isa.h"
#include "util/types.h"

/// 0 if no tensor of the product has more than four dimensions.
#ifndef ORCH_VOLUMES
#define ORCH_VOLUMES 1
#endif

namespace orch {

inline constexpr bool kVolumes = ORCH_VOLUMES != 0;

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
        if (kVolumes && tensor.dim == 5 && i == 2) depth_stride = strides[d++];
        size[i] = tensor.size(d);
        stride[i] = strides[d++];
      }
    }
  }
};

/// Sum of the items of a window of a plane, which has one.
template <typename C, typename T, typename Window>
ORCH_ALWAYS_INLINE C sum_of(const T* plane, const Planes& x, const Window& rows,
                            const Window& columns) {
  const int32_t step = x.stride[3];
  const T* row = plane + rows.first * x.stride[2] + columns.first * step;
  C sum = 0;
  for (int32_t i = rows.first; i < rows.last; ++i) {
    const T* item = row;
    for (int32_t j = columns.first; j < columns.last; ++j) {
      sum += static_cast<C>(*item);
      item += step;
    }
    row += x.stride[2];
  }
  return sum;
}

/// The largest item of a window of a plane, and its index in the plane;
/// `step_h` and `step_w` are the distances of positions. NaN stays, unless
/// another NaN follows.
template <typename C, typename T, typename Window>
ORCH_ALWAYS_INLINE C largest_of(const T* plane, const Planes& x,
                                const Window& rows, const Window& columns,
                                int32_t step_h, int32_t step_w,
                                int32_t& index) {
  const int32_t step = step_w * x.stride[3];
  C largest = lowest<C>();
  int32_t at = rows.first * x.size[3] + columns.first;
  if (columns.first < columns.last) {
    for (int32_t i = rows.first; i < rows.last; i += step_h) {
      const T* item = plane + i * x.stride[2] + columns.first * x.stride[3];
      int32_t j = columns.first;
      do {
        const C value = static_cast<C>(*item);
        if (!(value <= largest) && (value > largest || is_nan(value))) {
          largest = value;
          at = i * x.size[3] + j;
        }
        item += step;
        j += step_w;
      } while (j < columns.last);
    }
  }
  index = at;
  return largest;
}

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
