// Arithmetic of tensors with numbers.
#pragma once

#include "orch/value.h"
#include "util/scalar.h"
#include "util/unary.h"

namespace orch {

/// aten::<op>.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *,
///   Tensor(a!) out)
///
/// out = fn(self, other, alpha) in the type that they are computed in. PyTorch
/// rounds both numbers to the dtype of the result, but not their product.
/// `lanes` gets alpha * other. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, uint32_t kTaken, typename Fn>
Error with_scaled_number(const Args& args, Fn fn, LaneFn lanes = nullptr) {
  const Tensor& self = args.tensor(0);
  const Scalar& other = args.scalar(1);
  const Scalar& alpha = args.scalar(2);
  const ScalarType common = result_type(self.dtype, other);
  ORCH_CHECK(alpha_fits(alpha, common), Error::InvalidArgument);
  return unary_in<kBits, kTaken>(common, self, args.tensor(3), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C number = static_cast<C>(scalar_to<T>(other));
    const C factor = static_cast<C>(scalar_to<T>(alpha));
    const auto changed = [fn, number, factor](T item) {
      return static_cast<T>(fn(static_cast<C>(item), number, factor));
    };
    return in_lanes(type, changed, lanes, factor * number);
  });
}

}  // namespace orch
