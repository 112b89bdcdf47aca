#include "orch_selected/op_topk.h"

#include "orch/kernel.h"
#include "util/sort.h"

namespace orch::portable {

// aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True,
//   bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
//
// Always sorted; equal items are in the order of their indices.
Error topk_values(const Args& args) {
  const Tensor& self = args.tensor(0);
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(2), self.dim, dim));
  int32_t count = 0;
  ORCH_TRY(read_int(args.integer(1), 0, count));
  ORCH_CHECK(count <= (self.dim == 0 ? 1 : self.size(dim)),
             Error::InvalidArgument);
  return sort_lines<selected::aten_topk_values.bits, false>(
      self, dim, count, args.boolean(3), args.tensor(5), args.tensor(6));
}

}  // namespace orch::portable
