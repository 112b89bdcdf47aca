#include "orch_selected/op_hardtanh.h"

#include "orch/kernel.h"
#include "util/clamp.h"
#include "util/unary.h"

namespace orch::portable {

// aten::hardtanh.out(Tensor self, Scalar min_val=-1, Scalar max_val=1, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// Limits of integers are truncated; the upper one wins.
Error hardtanh_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Scalar& min = args.scalar(1);
  const Scalar& max = args.scalar(2);
  constexpr DtypeSet kDtypes = selected::aten_hardtanh_out;
  if constexpr ((kDtypes & kIntegral).bits != 0) {
    ORCH_CHECK(
        holds(self.dtype, min.to_int()) && holds(self.dtype, max.to_int()),
        Error::InvalidArgument);
  }
  return unary_same<kDtypes.bits>(self, args.tensor(3), [&](auto type) {
    using T = typename decltype(type)::type;
    return kept_within(type, scalar_to<T>(min), scalar_to<T>(max));
  });
}

// Prepared: floats.
void hardtanh(const PreparedCall& prepared) {
  const auto& call = static_cast<const LimitsCall&>(prepared);
  map_prepared(call, kept_within(Type<float>{}, call.low, call.high));
}

}  // namespace orch::portable
