#include "orch/kernel.h"
#include "util/bordered.h"

namespace orch::portable {

// aten::reflection_pad1d.out(Tensor self, SymInt[2] padding, *,
//   Tensor(a!) out) -> Tensor(a!)
Error reflection_pad1d_out(const Args& args) {
  return pad_border(args, 1, Border::Reflect);
}

}  // namespace orch::portable
