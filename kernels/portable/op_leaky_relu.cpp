#include "orch_selected/op_leaky_relu.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

// clang-format off
#define ORCH_LEAKY(x, y) \
  "vpt.f32 le, " x ", zr\n" \
  "vmult.f32 " x ", " x ", r2\n"
// clang-format on
ORCH_LANES(leaky_lanes, ORCH_LEAKY);

template <typename T>
auto leaky_of(Type<T> type, Compute<T> slope) {
  const auto fn = [slope](T value) {
    const Compute<T> x = static_cast<Compute<T>>(value);
    return x > 0 ? value : static_cast<T>(x * slope);
  };
  return in_lanes(type, fn, leaky_lanes, static_cast<float>(slope));
}

}  // namespace

// aten::leaky_relu.out(Tensor self, Scalar negative_slope=0.01, *,
//   Tensor(a!) out) -> Tensor(a!)
Error leaky_relu_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_leaky_relu_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(2), [&](auto type) {
        using T = typename decltype(type)::type;
        return leaky_of(type, scalar_as<T>(args.scalar(1)));
      });
}

// Prepared: floats.
void leaky_relu(const PreparedCall& prepared) {
  const auto& call = static_cast<const NumberCall&>(prepared);
  map_prepared(call, leaky_of(Type<float>{}, call.number));
}

}  // namespace orch::portable
