#include "orch_selected/op_nanmedian.h"

#include "orch/kernel.h"
#include "util/median.h"

namespace orch::portable {

// aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error nanmedian_dim_values(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_nanmedian_dim_values;
  return median_along<kDtypes.bits, NanRank::Last>(args);
}

// aten::nanmedian.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error nanmedian_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_nanmedian_out;
  return median_of_all<kDtypes.bits, NanRank::Last>(args);
}

}  // namespace orch::portable
