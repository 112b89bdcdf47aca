#include "orch_selected/op_gt.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {

// aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error gt_Scalar_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_gt_Scalar_out_of_self;
  constexpr DtypeSet kOut = selected::aten_gt_Scalar_out_of_out;
  return compare_number<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a > b; });
}

// aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error gt_Tensor_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_gt_Tensor_out_of_self |
                           selected::aten_gt_Tensor_out_of_other;
  constexpr DtypeSet kOut = selected::aten_gt_Tensor_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return a > b; });
}

}  // namespace orch::portable
