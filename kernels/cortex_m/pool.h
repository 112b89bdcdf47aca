// Windows of int8 pooling.
#pragma once

#include <stdint.h>

#include "image.h"

namespace orch::cortex_m {

struct Pool {
  Image in;
  Image out;
  Axis rows;
  Axis columns;
  int32_t row_step;  // items between taps
  int32_t column_step;
};

/// The taps of one output pixel that lie in the input. None of them is without
/// any: outputs that have only padding are refused.
struct PoolWindow {
  int32_t first;  // item of the first channel at the first tap
  int32_t rows;
  int32_t columns;
};

/// Finds the size of the output along one axis. Every window must begin in
/// front of the end of the input and end behind its beginning. Errors:
/// InvalidArgument.
inline Error set_pool_output(Axis& axis, bool ceil_mode) {
  ORCH_CHECK(axis.kernel > 0 && axis.in > 0, Error::InvalidArgument);
  ORCH_TRY(set_output(axis));
  const int32_t window = axis.dilation * (axis.kernel - 1) + 1;
  const int32_t padded = axis.in + 2 * axis.padding;
  if (ceil_mode && (padded - window) % axis.stride != 0) {
    // Not one that would begin in the padding behind.
    if (axis.out * axis.stride < axis.in + axis.padding) ++axis.out;
  }
  // The first and the last windows are those with the fewest taps.
  ORCH_CHECK(
      taps_at(axis, 0).count > 0 && taps_at(axis, axis.out - 1).count > 0,
      Error::InvalidArgument);
  return Error::Ok;
}

/// Reads the parameters of a pooling operator and gives `out` its sizes.
/// `dilation` may be null. Errors: InvalidArgument, NotSupported.
__attribute__((noinline)) inline Error prepare_pool(
    const Tensor& input, Layout layout, const IntList& kernel,
    const IntList& stride, const IntList& padding, const IntList* dilation,
    bool ceil_mode, Pool& pool, Tensor& out) {
  ORCH_TRY(read_image(input, layout, pool.in));
  int32_t sizes[2];
  int32_t strides[2];
  int32_t paddings[2];
  int32_t dilations[2] = {1, 1};
  ORCH_TRY(read_ints(kernel, 2, 1, sizes));
  ORCH_TRY(read_ints(stride, 2, 1, strides));
  ORCH_TRY(read_ints(padding, 2, 0, paddings));
  if (dilation != nullptr) ORCH_TRY(read_ints(*dilation, 2, 1, dilations));
  pool.rows = {pool.in.height, 0,           sizes[0],
               strides[0],     paddings[0], dilations[0]};
  pool.columns = {pool.in.width, 0,           sizes[1],
                  strides[1],    paddings[1], dilations[1]};
  ORCH_TRY(set_pool_output(pool.rows, ceil_mode));
  ORCH_TRY(set_pool_output(pool.columns, ceil_mode));
  pool.out = {pool.in.batch, pool.rows.out, pool.columns.out, pool.in.channels};
  ORCH_TRY(resize_image(out, layout, pool.out, input));
  Image written;
  ORCH_TRY(read_image(out, layout, written));
  pool.row_step =
      wrapping_product(dilations[0], pool.in.width * pool.in.channels);
  pool.column_step = wrapping_product(dilations[1], pool.in.channels);
  return Error::Ok;
}

/// Calls fn(window) for all pixels of the output in the order of its memory.
template <typename Fn>
void for_each_window(const Pool& pool, Fn&& fn) {
  const int32_t line = pool.in.width * pool.in.channels;
  for (int32_t n = 0; n < pool.out.batch; ++n) {
    for (int32_t h = 0; h < pool.out.height; ++h) {
      const Taps rows = taps_at(pool.rows, h);
      for (int32_t v = 0; v < pool.out.width; ++v) {
        const Taps columns = taps_at(pool.columns, v);
        fn(PoolWindow{(n * pool.in.height + rows.in) * line +
                          columns.in * pool.in.channels,
                      rows.count, columns.count});
      }
    }
  }
}

}  // namespace orch::cortex_m
