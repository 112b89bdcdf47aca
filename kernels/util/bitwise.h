// Operators on the bits of integers.
#pragma once

#include "orch/value.h"
#include "util/binary.h"
#include "util/unary.h"

namespace orch {

/// `a` times two to the power `b`; 0 where `b` is negative or not below the
/// width, as PyTorch has it.
template <typename T>
T shift_left(T a, T b) {
  using C = Compute<T>;
  const C by = static_cast<C>(b);  // large where b is negative
  return by < 8 * sizeof(T) ? static_cast<T>(static_cast<C>(a) << by) : T(0);
}

/// `a` divided by two to the power `b`, rounded down; all bits are the sign
/// where `b` is negative or not below the width, as PyTorch has it.
template <typename T>
T shift_right(T a, T b) {
  using C = Compute<T>;
  constexpr C kMost = 8 * sizeof(T) - (lowest<T>() != T(0) ? 1 : 0);
  const C by = static_cast<C>(b);
  return static_cast<T>(a >> (by < kMost ? by : kMost));
}

/// aten::<op>.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out):
/// out = fn(self, other). Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error bitwise_with_items(const Args& args, Fn fn) {
  return binary<kBits, (kIntegral | kBool).bits>(
      args.tensor(0), args.tensor(1), args.tensor(2), [fn](auto type) {
        using T = typename decltype(type)::type;
        return [fn](T a, T b) { return static_cast<T>(fn(a, b)); };
      });
}

/// aten::<op>.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out). The
/// number wraps around as an item does. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error bitwise_with_number(const Args& args, Fn fn) {
  const Tensor& self = args.tensor(0);
  const Scalar& other = args.scalar(1);
  ORCH_CHECK(!other.is_floating(), Error::InvalidArgument);
  return unary_in<kBits, (kIntegral | kBool).bits>(
      result_type(self.dtype, other), self, args.tensor(2), [&](auto type) {
        using T = typename decltype(type)::type;
        const T b = scalar_to<T>(other);
        return [fn, b](T a) { return static_cast<T>(fn(a, b)); };
      });
}

}  // namespace orch
