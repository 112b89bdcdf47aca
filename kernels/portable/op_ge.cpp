#include "orch_selected/op_ge.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {
namespace {

#define ORCH_GE(x, y) ORCH_COMPARE("ge", x, y, x)
#define ORCH_GE_NUMBER(x, y) ORCH_NUMBER(y) ORCH_GE(x, y)
ORCH_LANES(ge_lanes, ORCH_GE);
ORCH_LANES(ge_number_lanes, ORCH_GE_NUMBER);

}  // namespace

// aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error ge_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_ge_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_ge_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a >= b; }, ge_number_lanes);
}

// aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error ge_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_ge_Tensor_out_of_self |
                           selected::aten_ge_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_ge_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a >= b; }, ge_lanes);
}

}  // namespace orch::portable
