// Broadcasting of two tensors. Source: PyTorch, "Broadcasting semantics".
#pragma once

#include "util/check.h"
#include "util/strided_loop.h"

namespace orch {

/// Stride with which `tensor` follows dimension `dim` of a result of rank
/// `rank`: 0 where it has one item for all.
inline int32_t broadcast_stride(const Tensor& tensor, const Strides& strides,
                                int dim, int rank) {
  const int own = dim - (rank - tensor.dim);
  return own < 0 || tensor.size(own) == 1 ? 0 : strides[own];
}

/// Gives `out` the sizes that `a` and `b` broadcast to. Errors: InvalidArgument
/// (they do not, or out has other sizes), ShapeTooLarge.
inline Error resize_broadcast(Tensor& out, const Tensor& a, const Tensor& b) {
  if (kFavourSpeed && same_sizes_inline(a, out) && same_sizes_inline(b, out)) {
    return Error::Ok;
  }
  int32_t sizes[kMaxDim];
  const int rank = a.dim > b.dim ? a.dim : b.dim;
  for (int i = 0; i < rank; ++i) {
    const int of_a = i - (rank - a.dim);
    const int of_b = i - (rank - b.dim);
    const int32_t size_a = of_a < 0 ? 1 : a.size(of_a);
    const int32_t size_b = of_b < 0 ? 1 : b.size(of_b);
    ORCH_CHECK(size_a == size_b || size_a == 1 || size_b == 1,
               Error::InvalidArgument);
    sizes[i] = size_a == 1 ? size_b : size_a;
  }
  return resize_output(out, {sizes, static_cast<size_t>(rank)}, a, b);
}

/// loop_over for tensors of any dim order and sizes.
__attribute__((noinline)) inline StridedLoop loop_over_strides(
    const Tensor& out, const Tensor& a, const Tensor& b) {
  const Strides out_strides(out);
  const Strides a_strides(a);
  const Strides b_strides(b);
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(out.size(d), out_strides[d],
             broadcast_stride(a, a_strides, d, out.dim),
             broadcast_stride(b, b_strides, d, out.dim));
  }
  return loop;
}

/// A loop over `out` (tensor 0) in memory order, with `a` (1) and `b` (2)
/// broadcast to it. Trusts that resize_broadcast was successful.
inline StridedLoop loop_over(const Tensor& out, const Tensor& a,
                             const Tensor& b) {
  if (kFavourSpeed && a.contiguous() && b.contiguous() && out.contiguous() &&
      same_sizes_inline(a, out) && same_sizes_inline(b, out)) {
    return StridedLoop(out.numel());
  }
  return loop_over_strides(out, a, b);
}

}  // namespace orch
