#include "orch_selected/op_isinf.h"

#include "orch/kernel.h"
#include "util/classify.h"

namespace orch::portable {

// aten::isinf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error isinf_out(const Args& args) {
  return classify<selected::aten_isinf_out.bits>(
      args, [](auto size, auto infinity) { return size == infinity; });
}

}  // namespace orch::portable
