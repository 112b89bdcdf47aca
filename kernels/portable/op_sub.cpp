#include "orch_selected/op_sub.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/number.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

#define ORCH_SUB(x, y) "vsub.f32 " x ", " x ", r2\n"
// clang-format off
#define ORCH_SUB_SCALED(x, y) \
  "vmul.f32 " y ", " y ", r2\n" \
  "vsub.f32 " x ", " x ", " y "\n"
// clang-format on
ORCH_LANES(sub_lanes, ORCH_SUB);
ORCH_LANES(sub_scaled_lanes, ORCH_SUB_SCALED);
#define ORCH_SUB_PAIR(x, y) "vsub.f32 " x ", " x ", " y "\n"
ORCH_LANES(sub_pair_lanes, ORCH_SUB_PAIR);

auto difference_of_floats() {
  return in_lanes(
      Type<float>{}, [](float a, float b) { return a - b; }, sub_pair_lanes);
}
}  // namespace

// aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
//   -> Tensor(a!)
Error sub_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_sub_out;
  return binary_scaled<kDtypes.bits, (kReal | kComplex).bits>(
      args, [](auto a, auto alpha_b) { return a - alpha_b; }, sub_scaled_lanes);
}

// aten::sub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error sub_Scalar_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_sub_Scalar_out;
  return with_scaled_number<kDtypes.bits, kReal.bits>(
      args,
      [](auto item, auto number, auto alpha) { return item - alpha * number; },
      sub_lanes);
}

// Prepared: floats with an alpha of 1, of rows that lie side by side or not.
void subtract(const PreparedCall& call) {
  map_prepared_pairs<false>(call, difference_of_floats());
}

void subtract_rows(const PreparedCall& call) {
  map_prepared_pairs<true>(call, difference_of_floats());
}

}  // namespace orch::portable
