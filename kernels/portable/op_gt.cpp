#include "orch_selected/op_gt.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {
namespace {

#define ORCH_GT(x, y) ORCH_COMPARE("gt", x, y, x)
#define ORCH_GT_NUMBER(x, y) ORCH_NUMBER(y) ORCH_GT(x, y)
ORCH_LANES(gt_lanes, ORCH_GT);
ORCH_LANES(gt_number_lanes, ORCH_GT_NUMBER);

}  // namespace

// aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error gt_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_gt_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_gt_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a > b; }, gt_number_lanes);
}

// aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error gt_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_gt_Tensor_out_of_self |
                           selected::aten_gt_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_gt_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a > b; }, gt_lanes);
}

}  // namespace orch::portable
