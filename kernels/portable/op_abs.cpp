#include "orch_selected/op_abs.h"

#include "orch/kernel.h"
#include "util/complex.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

#define ORCH_ABS(x, y) "vabs.f32 " x ", " x "\n"
ORCH_LANES(abs_lanes, ORCH_ABS);

constexpr DtypeSet kDtypes = selected::aten_abs_out;

/// The distances of complex numbers from 0, in the dtype of their parts. kBits:
/// dtypes of `self`.
template <uint32_t kBits>
Error magnitudes(const Tensor& self, Tensor& out) {
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using R = decltype(T::real);
    ORCH_CHECK(out.dtype == DtypeOf<R>::value, Error::InvalidArgument);
    ORCH_TRY(resize_output(out, self.sizes(), self));
    StridedLoop loop = loop_over(out, self);
    map_rows(loop, self.data<T>(), out.mutable_data<R>(), [](T value) {
      return static_cast<R>(magnitude(static_cast<Compute<T>>(value)));
    });
    return Error::Ok;
  });
}

}  // namespace

// aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error abs_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  if constexpr ((kDtypes & kComplex).bits != 0) {
    if (kComplex.has(self.dtype)) {
      return magnitudes<(kDtypes & kComplex).bits>(self, out);
    }
  }
  return unary_same<(kDtypes.bits & ~kComplex.bits)>(self, out, [](auto type) {
    using T = typename decltype(type)::type;
    const auto size_of = [](T value) {
      // Added to 0, so that -0 becomes 0; the lowest integer stays.
      using C = Compute<T>;
      const C size = static_cast<C>(value);
      return static_cast<T>(is_negative(value) ? C(0) - size : C(0) + size);
    };
    return in_lanes(type, size_of, abs_lanes);
  });
}

}  // namespace orch::portable
