// Windows of two-dimensional pooling.
#pragma once

#include "orch/tensor.h"
#include "util/check.h"
#include "util/planes.h"

namespace orch {

/// Windows along one dimension.
struct PoolAxis {
  int32_t in;
  int32_t out;
  int32_t kernel;
  int32_t stride;
  int32_t padding;
  int32_t dilation;
};

/// Parameters of a pooling operator, [H, W].
struct Pool2d {
  PoolAxis axes[2];
};

/// Number of windows: one that starts in the padding after the input does not
/// count. Source: PyTorch, documentation of AvgPool2d. Errors: InvalidArgument.
inline Error set_windows(PoolAxis& axis, bool ceil_mode) {
  const int64_t window = int64_t{axis.dilation} * (axis.kernel - 1) + 1;
  const int64_t padded = axis.in + 2 * int64_t{axis.padding};
  ORCH_CHECK(2 * int64_t{axis.padding} <= window &&
                 padded + window + axis.stride <= kMaxExtent,
             Error::InvalidArgument);
  const int32_t room =
      static_cast<int32_t>(padded - window) + (ceil_mode ? axis.stride - 1 : 0);
  ORCH_CHECK(room >= 0, Error::InvalidArgument);
  axis.out = room / axis.stride + 1;
  if (ceil_mode && (axis.out - 1) * axis.stride >= axis.in + axis.padding) {
    --axis.out;
  }
  ORCH_CHECK(axis.out > 0, Error::InvalidArgument);
  return Error::Ok;
}

/// Reads the parameters of a pooling over `self`, [N, C, H, W] or [C, H, W],
/// and gives the sizes of the result. An empty `stride` is the kernel size;
/// without a `dilation` it is 1. Errors: InvalidArgument.
inline Error pooled_sizes(const Tensor& self, const IntList& kernel_size,
                          const IntList& stride, const IntList& padding,
                          const IntList* dilation, bool ceil_mode, Pool2d& pool,
                          int32_t* sizes) {
  ORCH_CHECK(self.dim == 3 || self.dim == 4, Error::InvalidArgument);
  int32_t kernels[2];
  int32_t strides[2];
  int32_t paddings[2];
  int32_t dilations[2] = {1, 1};
  ORCH_TRY(read_ints(kernel_size, 2, 1, kernels));
  ORCH_TRY(read_ints(stride.size() == 0 ? kernel_size : stride, 2, 1, strides));
  ORCH_TRY(read_ints(padding, 2, 0, paddings));
  if (dilation != nullptr) ORCH_TRY(read_ints(*dilation, 2, 1, dilations));

  const int first = self.dim - 2;
  for (int i = 0; i < first; ++i) {
    // Only the batch may be empty.
    ORCH_CHECK(self.size(i) > 0 || i < first - 1, Error::InvalidArgument);
    sizes[i] = self.size(i);
  }
  for (int i = 0; i < 2; ++i) {
    ORCH_CHECK(self.size(first + i) > 0, Error::InvalidArgument);
    pool.axes[i] = {self.size(first + i), 0,           kernels[i],
                    strides[i],           paddings[i], dilations[i]};
    ORCH_TRY(set_windows(pool.axes[i], ceil_mode));
    sizes[first + i] = pool.axes[i].out;
  }
  return Error::Ok;
}

/// The same, and gives `out` its sizes. Errors: InvalidArgument, ShapeTooLarge.
inline Error prepare_pool2d(const Tensor& self, const IntList& kernel_size,
                            const IntList& stride, const IntList& padding,
                            const IntList* dilation, bool ceil_mode,
                            Pool2d& pool, Tensor& out) {
  int32_t sizes[4];
  ORCH_TRY(pooled_sizes(self, kernel_size, stride, padding, dilation, ceil_mode,
                        pool, sizes));
  return resize_output(out, {sizes, self.dim}, self);
}

}  // namespace orch
