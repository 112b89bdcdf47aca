#include "orch_selected/op__to_copy.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/copy.h"

namespace orch::portable {

// aten::_to_copy.out(Tensor self, *, bool non_blocking=False,
//   MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)
//
// The dim order is the output's, whatever the format.
Error _to_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(3);

  constexpr DtypeSet kFrom = selected::aten__to_copy_out_of_self;
  constexpr DtypeSet kTo = selected::aten__to_copy_out_of_out;
  ORCH_TRY(set_sizes(out, self.sizes()));
  StridedLoop loop = loop_over(out, self);
  return copy_rows<kFrom.bits, kTo.bits>(loop, self, out);
}

}  // namespace orch::portable
