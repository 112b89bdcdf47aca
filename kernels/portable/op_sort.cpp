#include "orch_selected/op_sort.h"

#include "orch/kernel.h"
#include "util/sort.h"

namespace orch::portable {
namespace {

/// Always stable.
template <uint32_t kBits>
Error sort(const Args& args, int first) {
  const Tensor& self = args.tensor(0);
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(first), self.dim, dim));
  return sort_lines<kBits, true>(
      self, dim, self.dim == 0 ? 1 : self.size(dim), args.boolean(first + 1),
      args.tensor(first + 2), args.tensor(first + 3));
}

}  // namespace

// aten::sort.values(Tensor self, int dim=-1, bool descending=False, *,
//   Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error sort_values(const Args& args) {
  return sort<selected::aten_sort_values.bits>(args, 1);
}

// aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1,
//   bool descending=False, Tensor(a!) values, Tensor(b!) indices)
//   -> (Tensor(a!) values, Tensor(b!) indices)
Error sort_values_stable(const Args& args) {
  return sort<selected::aten_sort_values_stable.bits>(args, 2);
}

}  // namespace orch::portable
