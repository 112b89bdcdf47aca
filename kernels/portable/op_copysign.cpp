#include "orch_selected/op_copysign.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

/// `size` with the sign of `sign`; those of zeros and NaN count.
template <typename F>
F with_sign(F size, F sign) {
  if constexpr (kIsSame<F, double>) {
    return __builtin_copysign(size, sign);
  } else {
    return __builtin_copysignf(size, sign);
  }
}

}  // namespace

// aten::copysign.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error copysign_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_copysign_out;
  return binary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(1), args.tensor(2),
      [](auto size, auto sign) { return with_sign(size, sign); });
}

// aten::copysign.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error copysign_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_copysign_Scalar_out;
  const Scalar& other = args.scalar(1);
  // The highest bit is the sign, of integers and of doubles.
  const bool negative = other.bits() < 0;
  return unary_floating<kDtypes.bits>(
      args.tensor(0), args.tensor(2), [negative](auto size) {
        using C = decltype(size);
        return with_sign(size, static_cast<C>(negative ? -1 : 1));
      });
}

}  // namespace orch::portable
