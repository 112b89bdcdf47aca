#include "orch_selected/op_median.h"

#include "orch/kernel.h"
#include "util/rank.h"
#include "util/reduce.h"

namespace orch::portable {

// aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *,
//   Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
//
// The first of several, the lower one of two. NaN is the median of items with a
// NaN.
Error median_dim_values(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_median_dim_values;
  return pick_along<kDtypes.bits>(
      args, [](auto* items, const StridedLoop& line) {
        const int32_t count = line.row_size();
        return index_of_rank<NanRank::Found>(items, line.row_stride(0), count,
                                             (count - 1) / 2);
      });
}

}  // namespace orch::portable
