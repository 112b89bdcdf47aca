#include "orch_selected/op_sign.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

namespace {

// clang-format off
#define ORCH_SIGN(x, y) \
  "vmov.i32 " y ", #0\n" \
  "vpt.f32 gt, " y ", " x "\n" \
  "vmovt.f32 " y ", #-1.0\n" \
  "vpt.f32 gt, " x ", zr\n" \
  "vmovt.f32 " y ", #1.0\n" \
  "vmov " x ", " y "\n"
// clang-format on
ORCH_LANES(sign_lanes, ORCH_SIGN);
}  // namespace

// aten::sign.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//
// 0 for NaN.
Error sign_out(const Args& args) {
  return unary_same<selected::aten_sign_out.bits>(
      args.tensor(0), args.tensor(1), [](auto type) {
        using T = typename decltype(type)::type;
        const auto fn = [](T item) {
          const auto x = number_of(item);
          using N = decltype(number_of(item));
          return static_cast<T>(static_cast<N>(static_cast<int>(N(0) < x) -
                                               static_cast<int>(x < N(0))));
        };
        return in_lanes(type, fn, sign_lanes);
      });
}

}  // namespace orch::portable
