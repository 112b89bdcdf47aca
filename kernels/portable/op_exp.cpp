#include "orch_selected/op_exp.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/complex.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

constexpr DtypeSet kDtypes = selected::aten_exp_out;

/// Special values are those of C, annex G. C is float or double.
template <typename C>
Complex<C> exponential(Complex<C> z) {
  if (z.imag == 0) return {math::exp(z.real), z.imag};
  const C nan = z.imag - z.imag;
  if (!(nan == 0)) {
    if (z.real < 0 && z.real - z.real != 0) return {0, 0};
    return {z.real > 0 && z.real - z.real != 0 ? z.real : nan, nan};
  }
  // The exponential of the real part may be too large where its products are
  // not: a part of it comes last, e^64 or e^512.
  constexpr bool kWide = sizeof(C) == sizeof(double);
  constexpr C kFar = kWide ? C(512) : C(64);
  const bool is_far = z.real > kFar;
  const C size = math::exp(is_far ? z.real - kFar : z.real);
  const C last =
      static_cast<C>(kWide ? 2.2844135865397566e222 : 6.2351490808116169e27);
  const C factor = is_far ? last : C(1);
  return {size * math::cos(z.imag) * factor, size * math::sin(z.imag) * factor};
}

}  // namespace

// aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error exp_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  if constexpr ((kDtypes & kComplex).bits != 0) {
    if (kComplex.has(self.dtype)) {
      return unary_same<(kDtypes & kComplex).bits>(self, out, [](auto type) {
        return [](typename decltype(type)::type z) { return exponential(z); };
      });
    }
  }
  return unary_floating<kDtypes.bits & ~kComplex.bits>(
      self, out, of_lanes(Type<float>{}, [](auto x) { return math::exp(x); }));
}

}  // namespace orch::portable
