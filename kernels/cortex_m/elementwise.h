// Loops over int8 tensors: one to one, and two to one with broadcasting.
#pragma once

#include <stdint.h>

#include "image.h"
#include "isa.h"
#include "orch/kernel.h"
#include "util/broadcast.h"

namespace orch::cortex_m {

/// Checks the tensors of an operator on two and gives `out` the sizes that they
/// broadcast to. Errors: InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error prepare_pair(const Tensor& a,
                                                    const Tensor& b,
                                                    Tensor& out) {
  ORCH_CHECK(a.dtype == ScalarType::Char && b.dtype == ScalarType::Char &&
                 out.dtype == ScalarType::Char,
             Error::InvalidArgument);
  return resize_broadcast(out, a, b);
}

/// Items of one row of three tensors.
template <typename T>
struct PairRow {
  const T* a;
  const T* b;
  T* to;
  int32_t a_step;
  int32_t b_step;
  int32_t to_step;
  int32_t count;
};

/// Calls fn(row) for all items of `out` and those of `a` and `b` that belong to
/// them. Trusts that resize_broadcast was successful.
template <typename T, typename Fn>
ORCH_ALWAYS_INLINE void for_each_pair_row(const Tensor& a, const Tensor& b,
                                          Tensor& out, const Fn& fn) {
  StridedLoop loop = loop_over(out, a, b);
  for (; loop.valid(); loop.next()) {
    fn(PairRow<T>{a.data<T>() + loop.offset(1), b.data<T>() + loop.offset(2),
                  out.mutable_data<T>() + loop.offset(0), loop.row_stride(1),
                  loop.row_stride(2), loop.row_stride(0), loop.row_size()});
  }
}

/// The same for a prepared call.
template <typename T, typename Call, typename Fn>
ORCH_ALWAYS_INLINE void for_each_prepared_row(const Call& call, const Fn& fn) {
  const PairRows& rows = call.rows;
  PairRow<T> row = {static_cast<const T*>(call.a),
                    static_cast<const T*>(call.b),
                    static_cast<T*>(call.out),
                    rows.a_step,
                    rows.b_step,
                    1,
                    rows.count};
  for (int32_t left = rows.rows; left > 0; --left) {
    fn(row);
    row.a += rows.a_row;
    row.b += rows.b_row;
    row.to += rows.count;
  }
}

/// Items of a row: fn(a, b), one by one.
template <typename T, typename Fn>
ORCH_ALWAYS_INLINE void map_row(PairRow<T> row, const Fn& fn) {
  for (; row.count > 0; --row.count) {
    *row.to = static_cast<T>(fn(*row.a, *row.b));
    row.a += row.a_step;
    row.b += row.b_step;
    row.to += row.to_step;
  }
}

/// a + b, wrapping around: what programs hold is not checked.
inline int32_t wrapping_sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b));
}

/// Reads a multiplier, argument `first`, and the shift behind it. Errors:
/// InvalidArgument.
inline Error read_scale(const Args& args, int first, Scale& scale) {
  ORCH_TRY(read_between(args, first, INT32_MIN, INT32_MAX, scale.multiplier));
  return read_between(args, first + 1, -31, 31, scale.shift);
}

}  // namespace orch::cortex_m
