#include "orch/kernel.h"
#include "util/bordered.h"

namespace orch::portable {

// aten::replication_pad2d.out(Tensor self, SymInt[4] padding, *,
//   Tensor(a!) out) -> Tensor(a!)
Error replication_pad2d_out(const Args& args) {
  return pad_border(args, 2, Border::Replicate);
}

}  // namespace orch::portable
