#include "orch/kernel.h"
#include "util/transpose.h"

namespace orch::portable {

// aten::transpose_copy.int_out(Tensor self, int dim0, int dim1, *,
//   Tensor(a!) out) -> Tensor(a!)
Error transpose_copy_int_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  int first = 0;
  int second = 0;
  ORCH_TRY(read_dim(args.integer(1), self.dim, first));
  ORCH_TRY(read_dim(args.integer(2), self.dim, second));
  return transpose(self, first, second, args.tensor(3));
}

}  // namespace orch::portable
