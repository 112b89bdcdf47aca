#include "orch_selected/op_ones.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/fill.h"

namespace orch::portable {

// aten::ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)
Error ones_out(const Args& args) {
  Tensor& out = args.tensor(1);
  ORCH_TRY(resize_to_list(out, args.int_list(0)));
  constexpr Scalar kOne = {Tag::Int, {1, 0}};
  return fill<selected::aten_ones_out.bits>(out, kOne);
}

}  // namespace orch::portable
