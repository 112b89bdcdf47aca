#include <string.h>

#include "orch/kernel.h"
#include "util/check.h"

namespace orch::portable {

// aten::zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)
Error zeros_out(const Args& args) {
  Tensor& out = args.tensor(1);
  ORCH_TRY(resize_to_list(out, args.int_list(0)));
  memset(out.memory, 0, out.nbytes());  // 0 of every dtype
  return Error::Ok;
}

}  // namespace orch::portable
