#include "orch_selected/op_isnan.h"

#include "orch/kernel.h"
#include "util/classify.h"

namespace orch::portable {

// aten::isnan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error isnan_out(const Args& args) {
  return classify<selected::aten_isnan_out.bits>(
      args, [](auto size, auto infinity) { return size > infinity; });
}

}  // namespace orch::portable
