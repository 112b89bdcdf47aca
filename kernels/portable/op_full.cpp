#include "orch_selected/op_full.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/fill.h"

namespace orch::portable {

// aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out)
//   -> Tensor(a!)
Error full_out(const Args& args) {
  Tensor& out = args.tensor(2);
  ORCH_TRY(resize_to_list(out, args.int_list(0)));
  return fill<selected::aten_full_out.bits>(out, args.scalar(1));
}

}  // namespace orch::portable
