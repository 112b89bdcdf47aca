#include "orch_selected/op__conj_physical.h"

#include "orch/kernel.h"
#include "util/conjugate.h"

namespace orch::portable {

// aten::_conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error _conj_physical_out(const Args& args) {
  return conjugate<selected::aten__conj_physical_out.bits>(args.tensor(0),
                                                           args.tensor(1));
}

}  // namespace orch::portable
