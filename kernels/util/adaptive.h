// Windows of adaptive pooling.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/planes.h"

namespace orch {

/// The windows along one dimension, one after the other: window `o` goes from
/// floor(o * in / out) to ceil((o + 1) * in / out). Source: PyTorch,
/// aten/src/ATen/native/AdaptivePooling.h.
struct AdaptiveWindow {
  int32_t first = 0;
  int32_t last;  // exclusive

  /// `out` is not 0.
  AdaptiveWindow(int32_t in, int32_t out)
      : step_(in / out), step_rest_(in - step_ * out), out_(out) {
    advance();
  }
  void next() {
    first = next_;
    advance();
  }
  int32_t size() const { return last - first; }

 private:
  void advance() {
    // As o * in / out: whole and rest, without products of sizes.
    next_ += step_;
    rest_ += step_rest_;
    if (rest_ >= out_) {
      rest_ -= out_;
      ++next_;
    }
    last = next_ + (rest_ != 0 ? 1 : 0);
  }

  int32_t step_;
  int32_t step_rest_;
  int32_t out_;
  int32_t next_ = 0;
  int32_t rest_ = 0;
};

/// Gives `out` the sizes of `self`, [N, C, H, W] or [C, H, W], or with volumes,
/// [D, H, W], with those of the list for the last kDims. Errors:
/// InvalidArgument, ShapeTooLarge.
template <int kDims>
Error resize_adaptive(const Tensor& self, const IntList& output_size,
                      Tensor& out) {
  ORCH_CHECK(self.dim == kDims + 1 || self.dim == kDims + 2,
             Error::InvalidArgument);
  int32_t sizes[kDims + 2];
  const int first = self.dim - kDims;
  ORCH_TRY(read_ints(output_size, kDims, 0, sizes + first));
  for (int i = 0; i < first; ++i) sizes[i] = self.size(i);
  for (int i = first; i < self.dim; ++i) {
    ORCH_CHECK(self.size(i) > 0, Error::InvalidArgument);
  }
  return resize_output(out, {sizes, self.dim}, self);
}

/// Window `o` of `out` along a dimension of `in` items, as AdaptiveWindow has
/// it: for volumes, where few windows lie in a line.
struct AdaptiveRange {
  int32_t first;
  int32_t last;

  AdaptiveRange(int64_t in, int64_t out, int32_t o)
      : first(static_cast<int32_t>(o * in / out)),
        last(static_cast<int32_t>(((o + 1) * in + out - 1) / out)) {}
  int32_t size() const { return last - first; }
};

/// aten::adaptive_max_pool<kDims>d.out(Tensor self, int[] output_size, *,
///   Tensor(a!) out, Tensor(b!) indices): checks, and sizes of the outputs.
/// Errors: InvalidArgument, ShapeTooLarge.
template <int kDims>
Error prepare_adaptive_max_pool(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);
  Tensor& indices = args.tensor(3);
  ORCH_CHECK(self.dtype == out.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_TRY(resize_adaptive<kDims>(self, args.int_list(1), out));
  return resize_output(indices, out.sizes(), self);
}

}  // namespace orch
