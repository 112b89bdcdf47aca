// Windows of pooling.
#pragma once

#include "orch/tensor.h"
#include "orch/value.h"
#include "util/check.h"
#include "util/planes.h"
#include "util/prepared.h"

namespace orch {

/// Parameters of a pooling operator: [H, W] or [D, H, W].
template <int kDims>
struct Pool {
  Axis axes[kDims];
};

/// Window `o` of an average: the positions from `first` below `last` that lie
/// in the input, and how many lie in the padded input.
struct AverageWindow {
  int32_t first;
  int32_t last;
  int32_t padded_size;

  AverageWindow(const Axis& axis, int32_t o) {
    first = o * axis.stride - axis.padding;
    last = first + axis.kernel;
    if (last > axis.in + axis.padding) last = axis.in + axis.padding;
    padded_size = last - first;
    if (first < 0) first = 0;
    if (last > axis.in) last = axis.in;
  }
  int32_t size() const { return last > first ? last - first : 0; }
};

/// The part of window `o` that begins inside of the input: positions from
/// `first` below `last`, `dilation` apart. It may be empty.
struct DilatedWindow {
  int32_t first;
  int32_t last;

  DilatedWindow(const Axis& axis, int32_t o) {
    first = o * axis.stride - axis.padding;
    last = first + axis.dilation * (axis.kernel - 1) + 1;
    if (last > axis.in) last = axis.in;
    if (first < 0) {
      first += (axis.dilation - 1 - first) / axis.dilation * axis.dilation;
    }
  }
};

/// Number of windows: one that starts in the padding after the input does not
/// count. Source: PyTorch, documentation of AvgPool2d. Errors: InvalidArgument.
inline Error set_windows(Axis& axis, bool ceil_mode) {
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
/// or with volumes, [D, H, W], and gives the sizes of the result. An empty
/// `stride` is the kernel size; without a `dilation` it is 1. Errors:
/// InvalidArgument.
template <int kDims>
Error pooled_sizes(const Tensor& self, const IntList& kernel_size,
                   const IntList& stride, const IntList& padding,
                   const IntList* dilation, bool ceil_mode, Pool<kDims>& pool,
                   int32_t* sizes) {
  ORCH_CHECK(self.dim == kDims + 1 || self.dim == kDims + 2,
             Error::InvalidArgument);
  int32_t kernels[kDims];
  int32_t strides[kDims];
  int32_t paddings[kDims];
  int32_t dilations[kDims];
  const IntList& steps = stride.size() == 0 ? kernel_size : stride;
  ORCH_TRY(read_ints(kernel_size, kDims, 1, kernels));
  ORCH_TRY(read_ints(steps, kDims, 1, strides));
  ORCH_TRY(read_ints(padding, kDims, 0, paddings));
  for (int32_t& apart : dilations) apart = 1;
  if (dilation != nullptr) ORCH_TRY(read_ints(*dilation, kDims, 1, dilations));

  const int first = self.dim - kDims;
  for (int i = 0; i < first; ++i) {
    // Only the batch may be empty.
    ORCH_CHECK(self.size(i) > 0 || i < first - 1, Error::InvalidArgument);
    sizes[i] = self.size(i);
  }
  for (int i = 0; i < kDims; ++i) {
    ORCH_CHECK(self.size(first + i) > 0, Error::InvalidArgument);
    pool.axes[i] = {self.size(first + i), 0,           kernels[i],
                    strides[i],           paddings[i], dilations[i]};
    ORCH_TRY(set_windows(pool.axes[i], ceil_mode));
    sizes[first + i] = pool.axes[i].out;
  }
  return Error::Ok;
}

/// The same, and gives `out` its sizes. Errors: InvalidArgument, ShapeTooLarge.
template <int kDims>
Error prepare_pool(const Tensor& self, const IntList& kernel_size,
                   const IntList& stride, const IntList& padding,
                   const IntList* dilation, bool ceil_mode, Pool<kDims>& pool,
                   Tensor& out) {
  int32_t sizes[kDims + 2];
  ORCH_TRY(pooled_sizes(self, kernel_size, stride, padding, dilation, ceil_mode,
                        pool, sizes));
  return resize_output(out, {sizes, self.dim}, self);
}

/// aten::avg_pool<kDims>d.out(Tensor self, int[] kernel_size, int[] stride=[],
///   int[] padding=0, bool ceil_mode=False, bool count_include_pad=True,
///   int? divisor_override=None, *, Tensor(a!) out): the parameters, and the
/// sizes of the output. `divisor` is 0 for None. Errors: InvalidArgument,
/// ShapeTooLarge.
template <int kDims>
Error prepare_avg_pool(const Args& args, Pool<kDims>& pool, int64_t& divisor) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(7);
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  divisor = 0;
  if (args.has(6)) {
    divisor = args.integer(6);
    ORCH_CHECK(divisor != 0, Error::InvalidArgument);
  }
  return prepare_pool(self, args.int_list(1), args.int_list(2),
                      args.int_list(3), nullptr, args.boolean(4), pool, out);
}

/// aten::max_pool<kDims>d_with_indices.out(Tensor self, int[] kernel_size,
///   int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False,
///   *, Tensor(a!) out, Tensor(b!) indices): the parameters, and the sizes of
/// the outputs. Errors: InvalidArgument, ShapeTooLarge.
template <int kDims>
Error prepare_max_pool(const Args& args, Pool<kDims>& pool) {
  const Tensor& self = args.tensor(0);
  const IntList dilation = args.int_list(4);
  Tensor& out = args.tensor(6);
  Tensor& indices = args.tensor(7);
  ORCH_CHECK(self.dtype == out.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_TRY(prepare_pool(self, args.int_list(1), args.int_list(2),
                        args.int_list(3), &dilation, args.boolean(5), pool,
                        out));
  return resize_output(indices, out.sizes(), self);
}

}  // namespace orch
