// Operators that make one number of the items along some dimensions.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/promote.h"
#include "util/strided_loop.h"

namespace orch {

/// Which items go into which result.
struct Reduction {
  /// Over the results; tensor 0 is the output, tensor 1 the input.
  StridedLoop kept;
  /// Over the items of one result in the order of their indices, whatever the
  /// dim order; tensor 0 is the input.
  StridedLoop items;
  /// Items of one result.
  int32_t count = 1;
};

/// Gives `out` its sizes and `reduction` its loops. `dims`: a bit for each
/// dimension that is reduced; where the sizes are kept they become 1. Errors:
/// InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error prepare_reduction(const Tensor& self,
                                                         unsigned dims,
                                                         bool keep, Tensor& out,
                                                         Reduction& reduction) {
  const Strides from(self);
  int32_t sizes[kMaxDim];
  int32_t steps[kMaxDim];  // of the input, by dimension of the output
  size_t rank = 0;
  for (int i = 0; i < self.dim; ++i) {
    const bool reduced = ((dims >> i) & 1U) != 0;
    if (reduced) {
      reduction.count *= self.size(i);
      reduction.items.add(self.size(i), from[i], 0);
    }
    if (reduced && !keep) continue;
    sizes[rank] = reduced ? 1 : self.size(i);
    steps[rank++] = from[i];
  }
  ORCH_TRY(resize_output(out, {sizes, rank}, self));
  const Strides to(out);
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    reduction.kept.add(out.size(d), to[d], steps[d]);
  }
  return Error::Ok;
}

/// The dimensions an `int[]? dim` names; all of them if it is None or empty.
/// Errors: InvalidArgument.
inline Error read_reduced_dims(const Args& args, int index, const Tensor& self,
                               unsigned& dims) {
  dims = 0;
  if (args.has(index)) {
    ORCH_TRY(read_dims(args.int_list(index), self.dim, dims));
  }
  if (dims == 0) dims = (1U << self.dim) - 1;
  return Error::Ok;
}

/// Checks a `ScalarType? dtype`: None, or that of the output. Errors:
/// InvalidArgument.
inline Error check_out_dtype(const Args& args, int index, const Tensor& out) {
  ORCH_CHECK(!args.has(index) ||
                 args.integer(index) == static_cast<int64_t>(out.dtype),
             Error::InvalidArgument);
  return Error::Ok;
}

/// out[...] = finish(sum of the items that go there). Items are converted to
/// the dtype of the output and summed one after the other in the type that it
/// is computed in.
///
/// kBits: dtypes of `self` and `out`. Errors: DtypeNotSelected, NotSupported
/// (floats to integers); then nothing is written.
template <uint32_t kBits, typename Finish>
Error sum_items(const Tensor& self, Tensor& out, Reduction& reduction,
                Finish finish) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  return switch_dtype<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    constexpr DtypeSet kFrom = kIsFloating<T> || kIsSame<T, bool>
                                   ? kDtypes
                                   : kDtypes & (kIntegral | kBool);
    ORCH_CHECK(kFrom.has(self.dtype), Error::NotSupported);
    StridedLoop& kept = reduction.kept;
    StridedLoop& items = reduction.items;
    for (; kept.valid(); kept.next()) {
      for (int32_t i = 0; i < kept.row_size(); ++i) {
        const int32_t first = kept.offset(1) + i * kept.row_stride(1);
        C sum = 0;
        for (; items.valid(); items.next()) {
          const int32_t from = first + items.offset(0);
          const int32_t step = items.row_stride(0);
          if (kDtypes.single() || self.dtype == out.dtype) {
            const T* item = self.data<T>() + from;
            for (int32_t k = 0; k < items.row_size(); ++k) {
              sum += static_cast<C>(item[k * step]);
            }
          } else if constexpr (!kDtypes.single()) {
            for (int32_t k = 0; k < items.row_size(); ++k) {
              sum += static_cast<C>(load_as<T, kFrom.bits>(
                  self.dtype, self.memory, from + k * step));
            }
          }
        }
        if (reduction.count != 0) items.restart();
        out.mutable_data<T>()[kept.offset(0) + i * kept.row_stride(0)] =
            convert<T>(finish(sum));
      }
    }
    return Error::Ok;
  });
}

/// Number of the largest item of a loop over tensor 0, the first of several;
/// NaN is above all. There is an item.
template <typename T>
int32_t index_of_largest(const T* items, StridedLoop& loop) {
  using W = typename Choose<kIsHalf<T>, float, T>::type;
  W best = static_cast<W>(items[0]);
  int32_t found = 0;
  int32_t number = 0;
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i, ++number) {
      const W value =
          static_cast<W>(items[loop.offset(0) + i * loop.row_stride(0)]);
      if (!is_nan(best) && (value > best || is_nan(value))) {
        best = value;
        found = number;
      }
    }
  }
  return found;
}

}  // namespace orch
