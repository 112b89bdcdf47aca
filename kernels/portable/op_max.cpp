#include "orch_selected/op_max.h"

#include "orch/kernel.h"
#include "util/extreme.h"

namespace orch::portable {

// aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) max, Tensor(b!) max_values)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error max_dim_max(const Args& args) {
  return extremes_along<selected::aten_max_dim_max.bits, false>(args);
}

// aten::max.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error max_unary_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_max_unary_out_of_self;
  constexpr DtypeSet kOut = selected::aten_max_unary_out_of_out;
  return extreme_item<kIn.bits, kOut.bits, false>(args);
}

}  // namespace orch::portable
