// Medians of lines and of tensors: the lower one of two, the first of several.
#pragma once

#include "util/rank.h"
#include "util/reduce.h"

namespace orch {

/// Index of the median. NanRank::Found: NaN if an item is; NanRank::Last: that
/// of the numbers, NaN if there are none.
template <NanRank kNan, typename T>
int32_t index_of_median(const T* items, int32_t step, int32_t count) {
  int32_t numbers = count;
  if constexpr (kNan == NanRank::Last && kIsFloating<T>) {
    for (int32_t i = 0; i < count; ++i) {
      if (is_nan(number_of(items[i * step]))) --numbers;
    }
  }
  const int32_t rank = numbers == 0 ? 0 : (numbers - 1) / 2;
  return index_of_rank<kNan>(items, step, count, rank);
}

/// aten::<op>.dim_values(Tensor self, int dim, bool keepdim=False, *,
///   Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
template <uint32_t kBits, NanRank kNan>
Error median_along(const Args& args) {
  return pick_along<kBits>(args, [](auto* items, const StridedLoop& line) {
    return index_of_median<kNan>(items, line.row_stride(0), line.row_size());
  });
}

/// aten::<op>.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
template <uint32_t kBits, NanRank kNan>
Error median_of_all(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  const int32_t count = self.numel();
  ORCH_CHECK(self.dtype == out.dtype && count != 0, Error::InvalidArgument);
  ORCH_TRY(resize_output(out, {}, self));
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const items = self.data<T>();
    *out.mutable_data<T>() = items[index_of_median<kNan>(items, 1, count)];
    return Error::Ok;
  });
}

}  // namespace orch
