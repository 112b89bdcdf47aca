// Operators that work along one dimension.
#pragma once

#include "util/strided_loop.h"

namespace orch {

/// The lines of a tensor along a dimension, and those of outputs with the same
/// sizes, except along that dimension. A tensor without dimensions is one line
/// of one item.
struct Lines {
  /// Over the first items of all lines; tensor 0 is the output, tensor 1 the
  /// input, tensor 2 the second output.
  StridedLoop loop;
  /// Items of a line of the input.
  int32_t size = 1;
  /// From one item of a line to the next, by tensor of the loop.
  int32_t step[StridedLoop::kTensors] = {};

  /// Trusts that the outputs have their sizes; `second` may be `out`.
  Lines(const Tensor& self, int dim, const Tensor& out, const Tensor& second);
};

__attribute__((noinline)) inline Lines::Lines(const Tensor& self, int dim,
                                              const Tensor& out,
                                              const Tensor& second) {
  const Strides to(out);
  const Strides from(self);
  const Strides also(second);
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d != dim) {
      loop.add(out.size(d), to[d], from[d], also[d]);
    } else {
      size = self.size(d);
      step[0] = to[d];
      step[1] = from[d];
      step[2] = also[d];
    }
  }
}

/// Calls fn(to, from, also) for every line: offsets of its first items in the
/// tensors of the loop.
template <typename Fn>
void each_line(Lines& lines, Fn fn) {
  StridedLoop& loop = lines.loop;
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      fn(loop.offset(0) + i * loop.row_stride(0),
         loop.offset(1) + i * loop.row_stride(1),
         loop.offset(2) + i * loop.row_stride(2));
    }
  }
}

}  // namespace orch
