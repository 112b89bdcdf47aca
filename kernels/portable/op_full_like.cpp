#include "orch_selected/op_full_like.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/fill.h"

namespace orch::portable {

// aten::full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat?
//   memory_format=None, Tensor(a!) out) -> Tensor(a!)
Error full_like_out(const Args& args) {
  Tensor& out = args.tensor(3);
  ORCH_TRY(set_sizes(out, args.tensor(0).sizes()));
  return fill<selected::aten_full_like_out.bits>(out, args.scalar(1));
}

}  // namespace orch::portable
