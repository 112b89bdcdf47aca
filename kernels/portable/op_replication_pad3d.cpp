#include "orch/kernel.h"
#include "util/bordered.h"

namespace orch::portable {

// aten::replication_pad3d.out(Tensor self, SymInt[6] padding, *,
//   Tensor(a!) out) -> Tensor(a!)
Error replication_pad3d_out(const Args& args) {
  return pad_border(args, 3, Border::Replicate);
}

}  // namespace orch::portable
