// Operators that round every item to a whole number.
#pragma once

#include "orch/value.h"
#include "util/lanes.h"
#include "util/move_items.h"
#include "util/round.h"
#include "util/unary.h"

namespace orch {

#define ORCH_DOWN(x, y) "vrintm.f32 " x ", " x "\n"
#define ORCH_UP(x, y) "vrintp.f32 " x ", " x "\n"
#define ORCH_TO_ZERO(x, y) "vrintz.f32 " x ", " x "\n"
#define ORCH_TO_EVEN(x, y) "vrintn.f32 " x ", " x "\n"
ORCH_LANES(down_lanes, ORCH_DOWN);
ORCH_LANES(up_lanes, ORCH_UP);
ORCH_LANES(to_zero_lanes, ORCH_TO_ZERO);
ORCH_LANES(to_even_lanes, ORCH_TO_EVEN);

template <Rounding kTo>
LaneFn lanes_to() {
  if constexpr (kTo == Rounding::Down) return down_lanes;
  if constexpr (kTo == Rounding::Up) return up_lanes;
  if constexpr (kTo == Rounding::ToZero) return to_zero_lanes;
  if constexpr (kTo == Rounding::ToEven) return to_even_lanes;
}

/// aten::<op>.out(Tensor self, *, Tensor(a!) out): integers are copied. kBits:
/// dtypes of both. Errors: InvalidArgument, ShapeTooLarge, DtypeNotSelected.
template <uint32_t kBits, Rounding kTo>
Error round_items(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  constexpr DtypeSet kDtypes{kBits};
  if constexpr ((kDtypes & kIntegral).bits != 0) {
    if ((kDtypes & kIntegral).has(self.dtype)) return move_all(self, out);
  }
  return unary_same<(kDtypes & kFloating).bits>(self, out, [](auto type) {
    using T = typename decltype(type)::type;
    return in_lanes(
        type,
        [](T item) { return static_cast<T>(whole<kTo>(number_of(item))); },
        lanes_to<kTo>());
  });
}

}  // namespace orch
