#include "orch_selected/op_le.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {
namespace {

#define ORCH_LE(x, y) ORCH_COMPARE("ge", y, x, x)
#define ORCH_LE_NUMBER(x, y) ORCH_NUMBER(y) ORCH_LE(x, y)
ORCH_LANES(le_lanes, ORCH_LE);
ORCH_LANES(le_number_lanes, ORCH_LE_NUMBER);

}  // namespace

// aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error le_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_le_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_le_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a <= b; }, le_number_lanes);
}

// aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error le_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_le_Tensor_out_of_self |
                           selected::aten_le_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_le_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a <= b; }, le_lanes);
}

}  // namespace orch::portable
