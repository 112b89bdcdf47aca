#include "orch/kernel.h"
#include "util/bordered.h"

namespace orch::portable {

// aten::replication_pad1d.out(Tensor self, SymInt[2] padding, *,
//   Tensor(a!) out) -> Tensor(a!)
Error replication_pad1d_out(const Args& args) {
  return pad_border(args, 1, Border::Replicate);
}

}  // namespace orch::portable
