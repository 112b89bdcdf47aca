#include "orch/kernel.h"
#include "util/bordered.h"

namespace orch::portable {

// aten::reflection_pad2d.out(Tensor self, SymInt[4] padding, *,
//   Tensor(a!) out) -> Tensor(a!)
Error reflection_pad2d_out(const Args& args) {
  return pad_border(args, 2, Border::Reflect);
}

}  // namespace orch::portable
