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

/// The sizes that `a` and `b` broadcast to. Errors: InvalidArgument (they do
/// not).
__attribute__((noinline)) inline Error broadcast_sizes(const Tensor& a,
                                                       const Tensor& b,
                                                       int32_t* sizes) {
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
  return Error::Ok;
}

/// Gives `out` the sizes that `a` and `b` broadcast to. Errors: InvalidArgument
/// (they do not, or out has other sizes), ShapeTooLarge.
inline Error resize_broadcast(Tensor& out, const Tensor& a, const Tensor& b) {
  if (kFavourSpeed && same_sizes_inline(a, out) && same_sizes_inline(b, out)) {
    return Error::Ok;
  }
  int32_t sizes[kMaxDim];
  ORCH_TRY(broadcast_sizes(a, b, sizes));
  const size_t rank = a.dim > b.dim ? a.dim : b.dim;
  return resize_output(out, {sizes, rank}, a, b);
}

/// The same for three.
__attribute__((noinline)) inline Error resize_broadcast(Tensor& out,
                                                        const Tensor& a,
                                                        const Tensor& b,
                                                        const Tensor& c) {
  const Tensor* const inputs[] = {&a, &b, &c};
  int rank = 0;
  for (const Tensor* input : inputs) {
    if (input->dim > rank) rank = input->dim;
  }
  int32_t sizes[kMaxDim];
  for (int i = 0; i < rank; ++i) sizes[i] = 1;
  for (const Tensor* input : inputs) {
    int32_t* to = sizes + (rank - input->dim);
    for (int i = 0; i < input->dim; ++i) {
      const int32_t size = input->size(i);
      ORCH_CHECK(size == to[i] || size == 1 || to[i] == 1,
                 Error::InvalidArgument);
      if (to[i] == 1) to[i] = size;
    }
  }
  return resize_output(out, {sizes, static_cast<size_t>(rank)}, a, b, c);
}

/// Checks that `tensor` broadcasts to these sizes. Errors: InvalidArgument.
__attribute__((noinline)) inline Error check_fills(const Tensor& tensor,
                                                   Span<const int32_t> sizes) {
  const int rank = static_cast<int>(sizes.size());
  ORCH_CHECK(tensor.dim <= rank, Error::InvalidArgument);
  for (int i = 0; i < tensor.dim; ++i) {
    const int32_t size = sizes[static_cast<size_t>(rank - tensor.dim + i)];
    ORCH_CHECK(tensor.size(i) == 1 || tensor.size(i) == size,
               Error::InvalidArgument);
  }
  return Error::Ok;
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
