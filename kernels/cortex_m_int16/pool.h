// Windows of int16 pooling.
#pragma once

#include <stdint.h>

#include "cortex_m/pool.h"
#include "image.h"

namespace orch::cortex_m_int16 {

using cortex_m::Pool;
using cortex_m::PoolTaps;
using cortex_m::PoolWindow;

/// Reads the parameters of a pooling operator, arguments 1 to 3 and, if
/// `dilated`, 4, and gives `out` its sizes. Errors: InvalidArgument,
/// NotSupported.
__attribute__((noinline)) inline Error prepare_pool(const Args& args,
                                                    bool dilated,
                                                    bool ceil_mode, Pool& pool,
                                                    Tensor& out) {
  const Tensor& input = args.tensor(0);
  Image in;
  ORCH_TRY(read_image(input, in));
  int32_t kernel[2];
  ORCH_TRY(read_ints(args.int_list(1), 2, 1, kernel));
  // Sums of windows have 32 bits.
  ORCH_CHECK(int64_t{kernel[0]} * kernel[1] <= UINT16_MAX,
             Error::InvalidArgument);
  pool.rows.kernel = kernel[0];
  pool.columns.kernel = kernel[1];
  ORCH_TRY(cortex_m::read_axes(args, 2, dilated ? 3 : 2, in, pool.rows,
                               pool.columns));
  ORCH_TRY(cortex_m::set_pool_output(pool.rows, ceil_mode));
  ORCH_TRY(cortex_m::set_pool_output(pool.columns, ceil_mode));
  const Image to = {in.batch, pool.rows.out, pool.columns.out, in.channels};
  ORCH_TRY(resize_image(out, to, input));
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
                                     const PoolWindow& window, const int16_t* x,
                                     const Fn& fn) {
  ORCH_FEW_ROUNDS
  for (int32_t i = window.rows; i > 0; --i) {
    const int16_t* from = x;
    ORCH_FEW_ROUNDS
    for (int32_t j = window.columns; j > 0; --j) {
      fn(*from);
      from += taps.column_step;
    }
    x += taps.row_step;
  }
}

}  // namespace orch::cortex_m_int16
