// Windows of int8 pooling.
#pragma once

#include <stdint.h>

#include "image.h"
#include "prepared.h"

namespace orch::cortex_m {

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
__attribute__((noinline)) inline Error set_pool_output(Axis& axis,
                                                       bool ceil_mode) {
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

/// Reads the parameters of a pooling operator, arguments 1 to 3 and, if
/// `dilated`, 4, and gives `out` its sizes. Errors: InvalidArgument,
/// NotSupported.
__attribute__((noinline)) inline Error prepare_pool(const Args& args,
                                                    Layout layout, bool dilated,
                                                    bool ceil_mode, Pool& pool,
                                                    Tensor& out) {
  const Tensor& input = args.tensor(0);
  Image in;
  ORCH_TRY(read_image(input, layout, in));
  int32_t kernel[2];
  ORCH_TRY(read_ints(args.int_list(1), 2, 1, kernel));
  pool.rows.kernel = kernel[0];
  pool.columns.kernel = kernel[1];
  ORCH_TRY(read_axes(args, 2, dilated ? 3 : 2, in, pool.rows, pool.columns));
  ORCH_TRY(set_pool_output(pool.rows, ceil_mode));
  ORCH_TRY(set_pool_output(pool.columns, ceil_mode));
  const Image to = {in.batch, pool.rows.out, pool.columns.out, in.channels};
  ORCH_TRY(resize_image(out, layout, to, input));
  pool.batch = in.batch;
  pool.taps = {
      in.channels,
      wrapping_product(pool.rows.dilation, in.width * in.channels),
      wrapping_product(pool.columns.dilation, in.channels),
  };
  return Error::Ok;
}

/// Calls fn(item) for the taps of a window, whose first one is at `x`.
template <typename Fn>
ORCH_ALWAYS_INLINE void for_each_tap(const PoolTaps& taps,
                                     const PoolWindow& window, const int8_t* x,
                                     Fn&& fn) {
  int32_t rows = window.rows;
  do {
    const int8_t* from = x;
    int32_t columns = window.columns;
    ORCH_FEW_ROUNDS
    do {
      fn(from);
      from += taps.column_step;
    } while (--columns != 0);
    x += taps.row_step;
  } while (--rows != 0);
}

/// Calls fn(window) for all pixels of the output in the order of its memory.
template <typename Fn>
ORCH_ALWAYS_INLINE void for_each_window(const Pool& pool, Fn&& fn) {
  const int32_t channels = pool.taps.channels;
  const int32_t line = pool.columns.in * channels;
  const Axis& across = pool.columns;
  // Windows that begin before have all of their taps.
  const int32_t end = across.in - across.dilation * (across.kernel - 1);
  for (int32_t n = 0; n < pool.batch; ++n) {
    for (int32_t h = 0; h < pool.rows.out; ++h) {
      const Taps rows = taps_at(pool.rows, h);
      for (int32_t v = 0; v < across.out; ++v) {
        const int32_t in = v * across.stride - across.padding;
        const bool whole = in >= 0 && in < end;
        const Taps columns =
            whole ? Taps{0, across.kernel, in} : taps_at(across, v);
        fn(PoolWindow{
            (n * pool.rows.in + rows.in) * line + columns.in * channels,
            rows.count, columns.count});
      }
    }
  }
}

}  // namespace orch::cortex_m
