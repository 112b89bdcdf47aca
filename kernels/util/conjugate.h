// Conjugates of complex numbers.
#pragma once

#include "util/complex.h"
#include "util/dtype.h"
#include "util/move_items.h"
#include "util/unary.h"

namespace orch {

/// out = the conjugates of self; real numbers are their own. kBits: dtypes of
/// both. Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits>
Error conjugate(const Tensor& self, Tensor& out) {
  // What moves items would take any.
  ORCH_CHECK(DtypeSet{kBits}.has(self.dtype), Error::DtypeNotSelected);
  if constexpr ((kBits & kComplex.bits) != 0) {
    if (kComplex.has(self.dtype)) {
      return unary_same<(kBits & kComplex.bits)>(self, out, [](auto type) {
        using T = typename decltype(type)::type;
        return [](T value) {
          using R = decltype(T::real);
          return T(value.real, static_cast<R>(-number_of(value.imag)));
        };
      });
    }
  }
  return move_all(self, out);
}

}  // namespace orch
