// Operators that say which kind of number each item is.
#pragma once

#include <string.h>

#include "orch/value.h"
#include "util/dtype.h"
#include "util/lanes.h"
#include "util/unary.h"

namespace orch {

/// The bits of infinity as a dtype has it; those of NaN are above.
constexpr uint64_t infinity_bits(ScalarType dtype) {
  return dtype == ScalarType::Half       ? 0x7C00
         : dtype == ScalarType::BFloat16 ? 0x7F80
         : dtype == ScalarType::Float    ? 0x7F800000
                                         : uint64_t{0x7FF} << 52;
}

/// aten::<op>.out(Tensor self, *, Tensor(a!) out)
///
/// out = fn(size, infinity) of the bits of each item without its sign, and of
/// those of infinity, as `lanes` does of items and infinity. Integers are
/// neither infinite nor NaN. kBits: dtypes of `self`. Errors: InvalidArgument,
/// ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error classify(const Args& args, Fn fn, LaneFn lanes) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  ORCH_CHECK(out.dtype == ScalarType::Bool, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  if (!kFloating.has(self.dtype)) {
    ORCH_CHECK(DtypeSet{kBits}.has(self.dtype), Error::DtypeNotSelected);
    memset(out.memory, 0, out.nbytes());
    return Error::Ok;
  }
  StridedLoop loop = loop_over(out, self);
  constexpr uint32_t kFloats = (DtypeSet{kBits} & kFloating).bits;
  return switch_item<kFloats>(self.dtype, [&](auto type) {
    using U = typename decltype(type)::type;
    const U infinity = static_cast<U>(infinity_bits(self.dtype));
    const auto of_bits = [=](U bits) {
      constexpr U kSize = static_cast<U>(~U{0}) >> 1;
      return fn(static_cast<U>(bits & kSize), infinity);
    };
    if constexpr (ORCH_FLOAT_VECTORS != 0 && sizeof(U) == sizeof(float)) {
      const auto of_float = [=](float item) -> bool {
        U bits;
        memcpy(&bits, &item, sizeof bits);
        return of_bits(bits);
      };
      map_rows(loop, self.data<float>(), out.mutable_data<bool>(),
               in_lanes(Type<float>{}, of_float, lanes, __builtin_inff()));
    } else {
      map_rows(loop, self.data<U>(), out.mutable_data<bool>(), of_bits);
    }
    return Error::Ok;
  });
}

}  // namespace orch
