#include "orch_selected/op_var_mean.h"

#include "orch/kernel.h"
#include "util/variance.h"

namespace orch::portable {

// aten::var_mean.correction_out(Tensor self, int[1]? dim=None, *,
//   Scalar? correction=None, bool keepdim=False, Tensor(a!) out0,
//   Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))
Error var_mean_correction_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  unsigned dims = 0;
  ORCH_TRY(read_reduced_dims(args, 1, self, dims));
  return variance<selected::aten_var_mean_correction_out.bits>(
      self, dims, correction_of(args, 2), args.boolean(3), args.tensor(4),
      args.tensor(5));
}

}  // namespace orch::portable
