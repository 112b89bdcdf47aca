// Rows of two tensors, for functions that have no broadcasting.
#pragma once

#include "adapter.h"
#include "cortex_m/elementwise.h"

namespace cmsis_adapter {

/// Calls fn(a, b, to, count) for items that lie one after the other in all
/// three tensors; where one of them is broadcast, item by item. Returns the
/// first error.
template <typename Fn>
Error for_each_run(const Tensor& a, const Tensor& b, Tensor& out,
                   const Fn& fn) {
  Error error = Error::Ok;
  for_each_pair_row<int8_t>(a, b, out, [&](PairRow<int8_t> row) {
    const bool whole = row.a_step == 1 && row.b_step == 1 && row.to_step == 1;
    const int32_t count = whole ? row.count : 1;
    for (; row.count > 0 && error == Error::Ok; row.count -= count) {
      error = to_error(fn(row.a, row.b, row.to, count));
      row.a += row.a_step;
      row.b += row.b_step;
      row.to += row.to_step;
    }
  });
  return error;
}

}  // namespace cmsis_adapter
