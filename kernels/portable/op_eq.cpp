#include "orch_selected/op_eq.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {
namespace {

#define ORCH_EQ(x, y) ORCH_COMPARE("eq", x, y, x)
#define ORCH_EQ_NUMBER(x, y) ORCH_NUMBER(y) ORCH_EQ(x, y)
ORCH_LANES(eq_lanes, ORCH_EQ);
ORCH_LANES(eq_number_lanes, ORCH_EQ_NUMBER);

}  // namespace

// aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error eq_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_eq_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_eq_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a == b; }, eq_number_lanes);
}

// aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error eq_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_eq_Tensor_out_of_self |
                           selected::aten_eq_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_eq_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a == b; }, eq_lanes);
}

}  // namespace orch::portable
