#include "orch_selected/op_angle.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/complex.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

constexpr DtypeSet kDtypes = selected::aten_angle_out;
constexpr DtypeSet kIn = kDtypes & kComplex;
constexpr DtypeSet kOut = kDtypes & kFloating;

/// Of complex numbers, from -pi to pi.
[[maybe_unused]] Error angles(const Tensor& self, Tensor& out) {
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  return switch_dtype<kIn.bits>(self.dtype, [&](auto in) {
    using T = typename decltype(in)::type;
    return switch_dtype<kOut.bits>(out.dtype, [&](auto to) {
      using R = typename decltype(to)::type;
      StridedLoop loop = loop_over(out, self);
      map_rows(loop, self.data<T>(), out.mutable_data<R>(), [](T value) {
        const auto x = static_cast<Compute<T>>(value);
        return static_cast<R>(
            static_cast<Compute<R>>(math::atan2(x.imag, x.real)));
      });
      return Error::Ok;
    });
  });
}

}  // namespace

// aten::angle.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error angle_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  if constexpr (kIn.bits != 0) {
    if (kComplex.has(self.dtype)) return angles(self, out);
  }
  // Pi for negative numbers, else 0; what is not a number stays.
  return unary_floating<kDtypes.bits & ~kComplex.bits>(self, out, [](auto x) {
    using C = decltype(x);
    if (x != x) return x;
    return x < 0 ? static_cast<C>(3.14159265358979323846) : C(0);
  });
}

}  // namespace orch::portable
