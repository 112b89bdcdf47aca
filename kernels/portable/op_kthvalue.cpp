#include "orch_selected/op_kthvalue.h"

#include "orch/kernel.h"
#include "util/rank.h"
#include "util/reduce.h"

namespace orch::portable {

// aten::kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False,
//   *, Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
//
// The first of several equal items; NaN is above all numbers.
Error kthvalue_values(const Args& args) {
  const Tensor& self = args.tensor(0);
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(2), self.dim, dim));
  int32_t k = 0;
  ORCH_TRY(read_int(args.integer(1), 1, k));
  ORCH_CHECK(k <= (self.dim == 0 ? 1 : self.size(dim)), Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_kthvalue_values;
  return pick_along<kDtypes.bits, 2>(
      args, [k](auto* items, const StridedLoop& line) {
        return index_of_rank<NanRank::Last>(items, line.row_stride(0),
                                            line.row_size(), k - 1);
      });
}

}  // namespace orch::portable
