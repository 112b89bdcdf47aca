#include "orch/kernel.h"
#include "util/bordered.h"

namespace orch::portable {

// aten::reflection_pad3d.out(Tensor self, SymInt[6] padding, *,
//   Tensor(a!) out) -> Tensor(a!)
Error reflection_pad3d_out(const Args& args) {
  return pad_border(args, 3, Border::Reflect);
}

}  // namespace orch::portable
