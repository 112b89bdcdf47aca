// Softmax along a dimension, and its logarithm.
#pragma once

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/lines.h"

namespace orch::portable {

/// One line of a tensor: `size` items, at least one, steps apart.
template <bool kLog, typename In, typename Out>
ORCH_HOT void softmax_line(const In* from, int32_t from_step, Out* to,
                           int32_t to_step, int32_t size) {
  using C = Compute<In>;
  C largest = static_cast<C>(from[0]);
  for (int32_t i = 1; i < size; ++i) {
    const C value = static_cast<C>(from[i * from_step]);
    if (value > largest) largest = value;
  }
  C sum = 0;
  for (int32_t i = 0; i < size; ++i) {
    const C value = math::exp(static_cast<C>(from[i * from_step]) - largest);
    if constexpr (!kLog && kIsSame<C, Out>) to[i * to_step] = value;
    sum += value;
  }
  if constexpr (kLog) sum = math::log(sum);
  for (int32_t i = 0; i < size; ++i) {
    C value;
    if constexpr (kLog) {
      // In this order: the two numbers may differ much in size.
      value = static_cast<C>(from[i * from_step]) - largest - sum;
    } else {
      // A half cannot hold the exponential until here: it is computed again.
      if constexpr (kIsSame<C, Out>) {
        value = to[i * to_step];
      } else {
        value = math::exp(static_cast<C>(from[i * from_step]) - largest);
      }
      value /= sum;
    }
    to[i * to_step] = static_cast<Out>(value);
  }
}

template <bool kLog, typename In, typename Out>
void softmax_lines(const Tensor& self, Tensor& out, Lines& lines) {
  each_line(lines, [&](int32_t to, int32_t from, int32_t) {
    softmax_line<kLog>(self.data<In>() + from, lines.step[1],
                       out.mutable_data<Out>() + to, lines.step[0], lines.size);
  });
}

/// aten::_softmax.out, aten::_log_softmax.out(Tensor self, int dim,
///   bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)
///
/// kBits: dtypes of both.
template <uint32_t kBits, bool kLog>
Error softmax(const Args& args) {
  constexpr DtypeSet kDtypes{kBits};
  const Tensor& self = args.tensor(0);
  const bool half_to_float = args.boolean(2);
  Tensor& out = args.tensor(3);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_TRY(resize(out, self.sizes()));
  Lines lines(self, dim, out, out);
  if (half_to_float) {
    ORCH_CHECK(self.dtype == ScalarType::Half && out.dtype == ScalarType::Float,
               Error::InvalidArgument);
    if constexpr (kDtypes.has(ScalarType::Half) &&
                  kDtypes.has(ScalarType::Float)) {
      if (lines.size != 0) softmax_lines<kLog, Half, float>(self, out, lines);
      return Error::Ok;
    }
    return Error::DtypeNotSelected;
  }
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (lines.size != 0) softmax_lines<kLog, T, T>(self, out, lines);
    return Error::Ok;
  });
}

}  // namespace orch::portable
