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
    const T low = scalar_to<T>(min);
    const T high = scalar_to<T>(max);
    const auto fn = [=](T value) {
      return at_most(at_least(value, low), high);
    };
    const auto p0 = static_cast<float>(low);
    const auto p1 = static_cast<float>(high);
    return in_lanes(type, fn, lanes_within(p0, p1), p0, p1);
  });
}

}  // namespace orch::portable
