#include "orch_selected/op_remainder.h"

#include "orch/kernel.h"
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

}  // namespace orch::portable
