#include "orch_selected/op_fractional_max_pool2d.h"

#include "orch/kernel.h"
#include "util/fractional.h"

namespace orch::portable {

// aten::fractional_max_pool2d.output(Tensor self, int[2] kernel_size,
//   int[2] output_size, Tensor random_samples, *, Tensor(a!) output,
//   Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
Error fractional_max_pool2d_output(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_fractional_max_pool2d_output;
  ORCH_TRY_DATA((fractional_max_pool<kDtypes.bits, 2>(args)));
  return Error::Ok;
}

}  // namespace orch::portable
