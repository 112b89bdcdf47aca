// Tensors of volumes, and windows in them.
#pragma once

#include "orch/tensor.h"
#include "util/types.h"

namespace orch {

/// Sizes and strides of a tensor as [N, C, D, H, W]; N may be missing.
struct Volumes {
  int32_t size[5] = {1, 1, 1, 1, 1};
  int32_t stride[5] = {};

  __attribute__((noinline)) explicit Volumes(const Tensor& tensor) {
    const Strides strides(tensor);
    for (int d = 0, i = 5 - tensor.dim; d < tensor.dim; ++d, ++i) {
      size[i] = tensor.size(d);
      stride[i] = strides[d];
    }
  }
  /// Offset of an item of channel 0.
  int32_t at(int32_t n, int32_t d, int32_t h, int32_t w) const {
    return n * stride[0] + d * stride[2] + h * stride[3] + w * stride[4];
  }
};

/// Calls fn(n, d, h, w, depth, rows, columns) for each window of a pooling to
/// `y`; not one per channel. window(axis, o) is window `o` along an axis.
template <typename Window, typename Fn>
void each_window(const Volumes& y, Window window, Fn fn) {
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t d = 0; d < y.size[2]; ++d) {
      const auto depth = window(0, d);
      for (int32_t h = 0; h < y.size[3]; ++h) {
        const auto rows = window(1, h);
        for (int32_t w = 0; w < y.size[4]; ++w) {
          fn(n, d, h, w, depth, rows, window(2, w));
        }
      }
    }
  }
}

/// Sum of the items of a window of a volume.
template <typename C, typename T, typename Window>
C sum_of(const T* volume, const Volumes& x, const Window& depth,
         const Window& rows, const Window& columns) {
  C sum = 0;
  for (int32_t k = depth.first; k < depth.last; ++k) {
    for (int32_t i = rows.first; i < rows.last; ++i) {
      const T* item = volume + x.at(0, k, i, columns.first);
      for (int32_t j = columns.first; j < columns.last; ++j) {
        sum += static_cast<C>(*item);
        item += x.stride[4];
      }
    }
  }
  return sum;
}

/// The largest item of a window of a volume, and its index in the volume;
/// `step` is the distance of positions. NaN stays, unless another NaN follows.
template <typename C, typename T, typename Window>
C largest_of(const T* volume, const Volumes& x, const Window& depth,
             const Window& rows, const Window& columns, const int32_t* step,
             int64_t& index) {
  const auto index_of = [&x](int32_t k, int32_t i, int32_t j) {
    return (int64_t{k} * x.size[3] + i) * x.size[4] + j;
  };
  C largest = lowest<C>();
  index = index_of(depth.first, rows.first, columns.first);
  for (int32_t k = depth.first; k < depth.last; k += step[0]) {
    for (int32_t i = rows.first; i < rows.last; i += step[1]) {
      for (int32_t j = columns.first; j < columns.last; j += step[2]) {
        const C value = static_cast<C>(volume[x.at(0, k, i, j)]);
        if (value > largest || is_nan(value)) {
          largest = value;
          index = index_of(k, i, j);
        }
      }
    }
  }
  return largest;
}

}  // namespace orch
