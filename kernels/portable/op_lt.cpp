#include "orch_selected/op_lt.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {
namespace {

#define ORCH_LT(x, y) ORCH_COMPARE("gt", y, x, x)
#define ORCH_LT_NUMBER(x, y) ORCH_NUMBER(y) ORCH_LT(x, y)
ORCH_LANES(lt_lanes, ORCH_LT);
ORCH_LANES(lt_number_lanes, ORCH_LT_NUMBER);

}  // namespace

// aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error lt_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_lt_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_lt_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a < b; }, lt_number_lanes);
}

// aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error lt_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_lt_Tensor_out_of_self |
                           selected::aten_lt_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_lt_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a < b; }, lt_lanes);
}

}  // namespace orch::portable
