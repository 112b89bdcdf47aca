#include "orch_selected/op_remainder.h"

#include "orch/kernel.h"
#include "util/divide.h"
#include "util/remainder.h"
#include "util/unary.h"

namespace orch::portable {

// aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error remainder_Scalar_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Scalar& other = args.scalar(1);

  const ScalarType common = result_type(self.dtype, other);
  ORCH_CHECK(!is_zero_integer(other, common) || self.numel() == 0,
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_remainder_Scalar_out;
  return unary_in<kDtypes.bits, kReal.bits>(
      common, self, args.tensor(2), [&other](auto type) {
        using T = typename decltype(type)::type;
        const T b = scalar_to<T>(other);
        return [b](T a) { return floored_mod(a, b); };
      });
}

// aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error remainder_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(2);

  constexpr DtypeSet kDtypes = selected::aten_remainder_Tensor_out;
  ScalarType common;
  ORCH_TRY(prepare_binary<kDtypes.bits>(self, other, out, common));
  ORCH_TRY_DATA(check_divisors<kDtypes.bits>(common, self, other));
  return divide_items<kDtypes.bits>(
      common, self, other, out,
      [](auto a, auto b) { return floored_mod(a, b); });
}

}  // namespace orch::portable
