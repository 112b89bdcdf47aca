#include "orch_selected/op_logit.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

template <typename C>
C limited(C x, C low, C high) {
  return x < low ? low : x > high ? high : x;
}
#if ORCH_VECTORS
[[maybe_unused]] Lanes limited(Lanes x, float low, float high) {
  return if_above(Lanes(low), x, low, if_above(x, high, high, x));
}
#endif

}  // namespace

// aten::logit.out(Tensor self, float? eps=None, *, Tensor(a!) out)
//   -> Tensor(a!)
Error logit_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool has_eps = args.has(1) && args.scalar(1).bits() >= 0;
  Tensor& out = args.tensor(2);

  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten_logit_out;
  const ScalarType common =
      kFloating.has(self.dtype) ? self.dtype : ScalarType::Float;
  return map_in<kDtypes.bits, (kDtypes & kFloating).bits,
                computed_in_floats(kDtypes).bits>(
      common, self, out, [&](auto type) {
        using T = typename decltype(type)::type;
        using C = Compute<T>;
        const T eps = has_eps ? scalar_to<T>(args.scalar(1)) : T(0);
        const C low = static_cast<C>(eps);
        const C high = static_cast<C>(static_cast<T>(1 - low));
        return of_lanes(type, [=](auto value) {
          using V = decltype(value);
          auto x = number_of(value);
          if (has_eps) x = limited(x, low, high);
          // PyTorch rounds difference and quotient to the dtype.
          const auto rest = number_of(static_cast<V>(1 - x));
          return static_cast<V>(math::log(number_of(static_cast<V>(x / rest))));
        });
      });
}

}  // namespace orch::portable
