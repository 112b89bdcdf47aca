#include "orch_selected/op_copy_.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/copy.h"

namespace orch::portable {

// aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False)
//   -> Tensor(a!)
Error copy_(const Args& args) {
  Tensor& self = args.tensor(0);
  const Tensor& source = args.tensor(1);

  // There is nothing to wait for: non_blocking makes no difference.
  ORCH_TRY(check_fills(source, self.sizes()));
  constexpr DtypeSet kTo = selected::aten_copy__of_self;
  constexpr DtypeSet kFrom = selected::aten_copy__of_src;
  StridedLoop loop = loop_over(self, source, source);
  return copy_rows<kFrom.bits, kTo.bits>(loop, source, self);
}

}  // namespace orch::portable
