// The largest or smallest item of a whole tensor.
#pragma once

#include "orch/value.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/promote.h"

namespace orch {

/// aten::<op>.unary_out(Tensor self, *, Tensor(a!) out)
///
/// out = the item that is_better(item, other) than all, the last of several;
/// NaN wins. `least`: what every item is better than, the result of a tensor
/// without items. kIn: dtypes of `self`; kOut: of `out`. Errors:
/// InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kIn, uint32_t kOut, typename Least, typename Better>
Error extreme_item(const Args& args, Least least, Better is_better) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  ORCH_CHECK(can_cast(self.dtype, out.dtype), Error::InvalidArgument);
  ORCH_CHECK(DtypeSet{kOut}.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY(resize_output(out, {}, self));
  return switch_dtype<kIn>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using N = decltype(number_of(T()));
    constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
    // In memory order: which of equal items is found shows in no bit, but for
    // zeros of both signs.
    N best = least(Type<N>{});
    const T* item = self.data<T>();
    for (int32_t left = self.numel(); left > 0; --left, ++item) {
      const N x = number_of(*item);
      if (is_better(best, x)) continue;
      best = x;
      if (is_nan(x)) break;
    }
    store_as<castable_to(DtypeSet{kOut}, kT).bits>(out.dtype, out.memory, 0,
                                                   best);
    return Error::Ok;
  });
}

}  // namespace orch
