#include "orch_selected/op_bitwise_xor.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

constexpr DtypeSet kTaken = kIntegral | kBool;

}  // namespace

// aten::bitwise_xor.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_xor_Scalar_out(const Args& args) {
  const Scalar& other = args.scalar(1);
  ORCH_CHECK(!other.is_floating(), Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_bitwise_xor_Scalar_out;
  const Tensor& self = args.tensor(0);
  return unary_in<kDtypes.bits, kTaken.bits>(
      result_type(self.dtype, other), self, args.tensor(2),
      [&other](auto type) {
        using T = typename decltype(type)::type;
        const T b = scalar_to<T>(other);
        return [b](T a) { return static_cast<T>(a ^ b); };
      });
}

// aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error bitwise_xor_Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_bitwise_xor_Tensor_out;
  return binary<kDtypes.bits, kTaken.bits>(
      args.tensor(0), args.tensor(1), args.tensor(2), [](auto type) {
        using T = typename decltype(type)::type;
        return [](T a, T b) { return static_cast<T>(a ^ b); };
      });
}

}  // namespace orch::portable
