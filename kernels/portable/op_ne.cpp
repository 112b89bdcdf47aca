#include "orch_selected/op_ne.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {
namespace {

#define ORCH_NE(x, y) ORCH_COMPARE("ne", x, y, x)
#define ORCH_NE_NUMBER(x, y) ORCH_NUMBER(y) ORCH_NE(x, y)
ORCH_LANES(ne_lanes, ORCH_NE);
ORCH_LANES(ne_number_lanes, ORCH_NE_NUMBER);

}  // namespace

// aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error ne_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_ne_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_ne_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a != b; }, ne_number_lanes);
}

// aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error ne_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_ne_Tensor_out_of_self |
                           selected::aten_ne_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_ne_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a != b; }, ne_lanes);
}

}  // namespace orch::portable
