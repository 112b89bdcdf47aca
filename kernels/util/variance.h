// Variances along dimensions.
#pragma once

#include "util/moments.h"
#include "util/reduce.h"
#include "util/scalar.h"

namespace orch {

/// out[...] = sum of (item - mean)^2 / (number of items - correction), at least
/// 0; means[...] = mean. Computed in the type of `out`, whose dtype `means`
/// has, if it is there.
///
/// kBits: dtypes of all. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename... Means>
Error variance(const Tensor& self, unsigned dims, const Scalar& correction,
               bool keepdim, Tensor& out, Means&... means) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(((means.dtype == out.dtype) && ... && true),
             Error::InvalidArgument);
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction, means...));
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  return switch_dtype<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const int32_t count = reduction.count;
    C divisor = static_cast<C>(count) - scalar_as<T>(correction);
    if (divisor < 0) divisor = 0;
    StridedLoop& items = reduction.items;
    each_result(reduction, [&](int32_t to, int32_t from, int32_t also) {
      Moments<C> found;
      if (kDtypes.single() || self.dtype == out.dtype) {
        found = moments(self.data<T>() + from, items, count);
      } else if constexpr (!kDtypes.single()) {
        found = moments<C>(
            [&self, from](int32_t at) {
              return load_as<C, kBits>(self.dtype, self.memory, from + at);
            },
            items, count);
      }
      out.mutable_data<T>()[to] = static_cast<T>(found.squares / divisor);
      ((means.template mutable_data<T>()[also] = static_cast<T>(found.mean)),
       ...);
      static_cast<void>(also);
    });
    return Error::Ok;
  });
}

/// The Scalar? correction of an argument; 1 for None.
inline Scalar correction_of(const Args& args, int index) {
  if (args.has(index)) return args.scalar(index);
  return {Tag::Int, {1, 0}};
}

}  // namespace orch
