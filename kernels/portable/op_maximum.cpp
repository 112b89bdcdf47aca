#include "orch_selected/op_maximum.h"

#include "orch/kernel.h"
#include "util/binary.h"

namespace orch::portable {
namespace {

// clang-format off
#define ORCH_MAXIMUM(x, y) \
  "vpt.f32 ge, " y ", " x "\n" \
  "vmovt " x ", " y "\n" \
  "vpt.f32 ne, " y ", " y "\n" \
  "vmovt " x ", " y "\n"
// clang-format on
ORCH_LANES(maximum_lanes, ORCH_MAXIMUM);
}  // namespace

// aten::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error maximum_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_maximum_out;
  return binary<kDtypes.bits, (kReal | kBool).bits>(
      args.tensor(0), args.tensor(1), args.tensor(2), [](auto type) {
        using T = typename decltype(type)::type;
        // NaN wins, whichever it is.
        const auto fn = [](T a, T b) {
          const auto x = number_of(a);
          return x > number_of(b) || is_nan(x) ? a : b;
        };
        return in_lanes(type, fn, maximum_lanes);
      });
}

}  // namespace orch::portable
