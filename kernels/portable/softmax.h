// Softmax along a dimension, and its logarithm.
#pragma once

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/lanes.h"
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

#if ORCH_VECTORS
/// The largest of items that lie side by side. With a NaN among them it may be
/// any, as all results are NaN.
inline float largest_of(const float* from, int32_t size) {
  float largest = from[0];
  int32_t i = 1;
  if (size >= 4) {
    const FlushFlags flags;
    Lanes most = load_lanes(from);
    for (i = 4; size - i >= 4; i += 4) {
      const Lanes x = load_lanes(from + i);
      most = if_above(x, most, x, most);
    }
    if (is_rare(most)) {
      i = 1;
      FlushFlags::clear();
    } else {
      float four[4];
      store_lanes(four, most);
      for (const float x : four) largest = x > largest ? x : largest;
    }
  }
  for (; i < size; ++i) largest = from[i] > largest ? from[i] : largest;
  return largest;
}

/// The sum of e^(from[i] - largest), in order. Writes the terms if `kKeep`.
template <bool kKeep>
float sum_of_powers(const float* from, float* to, float largest, int32_t size) {
  const FlushFlags flags;
  float sum = 0;
  while (size > 0) {
    if (size >= 4) {
      Lanes y = math::exp(load_lanes(from) - largest);
      if (!is_rare(y)) {
        if constexpr (kKeep) store_lanes(to, y);
        sum = sum_in_order(sum, y);
        from += 4;
        to += 4;
        size -= 4;
        continue;
      }
      FlushFlags::clear();
    }
    for (int32_t plain = size < 4 ? size : 4; plain > 0; --plain, --size) {
      const float y = math::exp(*from++ - largest);
      if constexpr (kKeep) *to++ = y;
      sum += y;
    }
  }
  return sum;
}

/// softmax_line for items that lie side by side.
template <bool kLog>
__attribute__((noinline)) void softmax_row(const float* from, float* to,
                                           int32_t size) {
  const float largest = largest_of(from, size);
  const float sum = sum_of_powers<!kLog>(from, to, largest, size);
  if constexpr (kLog) {
    const float log = math::log(sum);
    const auto fn = [=](auto x) { return x - largest - log; };
    of_lanes(Type<float>{}, fn).row(from, to, size);
  } else {
    const auto fn = [=](auto x) { return x / sum; };
    of_lanes(Type<float>{}, fn).row(to, to, size);
  }
}
#endif

template <bool kLog, typename In, typename Out>
void softmax_lines(const Tensor& self, Tensor& out, Lines& lines) {
  each_line(lines, [&](int32_t to, int32_t from, int32_t) {
#if ORCH_VECTORS
    if constexpr (kIsSame<In, float> && kIsSame<Out, float>) {
      if (lines.step[0] == 1 && lines.step[1] == 1) {
        softmax_row<kLog>(self.data<In>() + from, out.mutable_data<Out>() + to,
                          lines.size);
        return;
      }
    }
#endif
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
  ORCH_TRY(set_sizes(out, self.sizes()));
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
