#include "orch_selected/op_min.h"

#include "orch/kernel.h"
#include "util/extreme.h"

namespace orch::portable {

// aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) min, Tensor(b!) min_indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error min_dim_min(const Args& args) {
  return extremes_along<selected::aten_min_dim_min.bits, true>(args);
}

// aten::min.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error min_unary_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_min_unary_out_of_self;
  constexpr DtypeSet kOut = selected::aten_min_unary_out_of_out;
  return extreme_item<kIn.bits, kOut.bits, true>(args);
}

}  // namespace orch::portable
