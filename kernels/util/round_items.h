// Operators that round every item to a whole number.
#pragma once

#include "orch/value.h"
#include "util/move_items.h"
#include "util/round.h"
#include "util/unary.h"

namespace orch {

/// aten::<op>.out(Tensor self, *, Tensor(a!) out): integers are copied. kBits:
/// dtypes of both. Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, Rounding kTo>
Error round_items(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  constexpr DtypeSet kDtypes{kBits};
  if constexpr ((kDtypes & kIntegral).bits != 0) {
    if ((kDtypes & kIntegral).has(self.dtype)) return move_all(self, out);
  }
  return unary_same<(kDtypes & kFloating).bits>(self, out, [](auto type) {
    using T = typename decltype(type)::type;
    return [](T item) { return static_cast<T>(whole<kTo>(number_of(item))); };
  });
}

}  // namespace orch
