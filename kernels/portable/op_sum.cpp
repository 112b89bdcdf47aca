#include "orch_selected/op_sum.h"

#include "orch/kernel.h"
#include "util/reduce.h"
#include "util/sum.h"

namespace orch::portable {

// aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *,
//   ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)
Error sum_IntList_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool keepdim = args.boolean(2);
  Tensor& out = args.tensor(4);

  unsigned dims = 0;
  Reduction reduction;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  ORCH_TRY(check_out_dtype(args, 3, out));
  ORCH_TRY(prepare_reduction(self, dims, keepdim, out, reduction));
  constexpr DtypeSet kDtypes = selected::aten_sum_IntList_out;
  return fold_items<kDtypes.bits>(
      self, out, reduction, [](auto load, StridedLoop& items) {
        return sum_of_items<decltype(load(0))>(load, items);
      });
}

}  // namespace orch::portable
