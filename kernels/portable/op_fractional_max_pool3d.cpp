#include "orch_selected/op_fractional_max_pool3d.h"

#include "orch/kernel.h"
#include "util/fractional.h"

namespace orch::portable {

// aten::fractional_max_pool3d.output(Tensor self, int[3] kernel_size,
//   int[3] output_size, Tensor random_samples, *, Tensor(a!) output,
//   Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
Error fractional_max_pool3d_output(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_fractional_max_pool3d_output;
  ORCH_TRY_DATA((fractional_max_pool<kDtypes.bits, 3>(args)));
  return Error::Ok;
}

}  // namespace orch::portable
