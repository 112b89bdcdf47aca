// Operators that fold the items of each line along a dimension, up to each one.
#pragma once

#include "util/isa.h"
#include "util/lines.h"
#include "util/reduce.h"

namespace orch {

/// aten::<op>.out(Tensor self, int dim, *, ScalarType? dtype=None,
///   Tensor(a!) out) -> Tensor(a!)
///
/// out[i] = fold(out[i - 1], self[i]) along `dim`, from kStart on. Items are
/// converted to the dtype of the output first, and folded in the type that it
/// is computed in. kBits: dtypes of `self` and `out`. Errors: InvalidArgument,
/// ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, int kStart, typename Fold>
ORCH_ALWAYS_INLINE Error fold_along(const Args& args, Fold fold) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_TRY(check_out_dtype(args, 2, out));
  ORCH_TRY(set_sizes(out, self.sizes()));
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  Lines lines(self, dim, out, out);
  return switch_dtype<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const int32_t to_step = lines.step[0];
    const int32_t from_step = lines.step[1];
    each_line(lines, [&](int32_t to, int32_t from, int32_t) {
      T* result = out.mutable_data<T>() + to;
      C folded = kStart;
      if (kDtypes.single() || self.dtype == out.dtype) {
        const T* item = self.data<T>() + from;
        for (int32_t left = lines.size; left > 0; --left) {
          folded = fold(folded, static_cast<C>(*item));
          *result = convert<T>(folded);
          item += from_step;
          result += to_step;
        }
      } else if constexpr (!kDtypes.single()) {
        for (int32_t left = lines.size; left > 0; --left) {
          folded = fold(folded, static_cast<C>(load_cast<T, kBits>(
                                    self.dtype, self.memory, from)));
          *result = convert<T>(folded);
          from += from_step;
          result += to_step;
        }
      }
    });
    return Error::Ok;
  });
}

/// aten::<op>.out(Tensor self, int dim, *, Tensor(a!) values,
///   Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
///
/// The most extreme item up to each one along `dim`, and its index, the last of
/// several. A NaN stays until the next one. beats(a, b): whether the item `a`
/// comes in place of `b`, which is before it. kBits: dtypes of `self`. Errors:
/// InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, typename Beats>
Error extreme_along(const Args& args, Beats beats) {
  const Tensor& self = args.tensor(0);
  Tensor& values = args.tensor(2);
  Tensor& indices = args.tensor(3);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_CHECK(values.dtype == self.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_TRY(set_sizes(values, self.sizes()));
  ORCH_TRY(resize_output(indices, self.sizes(), self, values));
  Lines lines(self, dim, values, indices);
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    each_line(lines, [&](int32_t to, int32_t from, int32_t also) {
      T extreme{};
      int32_t index = 0;
      for (int32_t i = 0; i < lines.size; ++i) {
        const T item = self.data<T>()[from + i * lines.step[1]];
        const auto number = number_of(item);
        const auto before = number_of(extreme);
        if (i == 0 || is_nan(number) ||
            (!is_nan(before) && beats(number, before))) {
          extreme = item;
          index = i;
        }
        values.mutable_data<T>()[to + i * lines.step[0]] = extreme;
        indices.mutable_data<int64_t>()[also + i * lines.step[2]] = index;
      }
    });
    return Error::Ok;
  });
}

}  // namespace orch
