#include "orch_selected/op_median.h"

#include "orch/kernel.h"
#include "util/median.h"

namespace orch::portable {

// aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error median_dim_values(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_median_dim_values;
  return median_along<kDtypes.bits, NanRank::Found>(args);
}

// aten::median.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error median_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_median_out;
  return median_of_all<kDtypes.bits, NanRank::Found>(args);
}

}  // namespace orch::portable
