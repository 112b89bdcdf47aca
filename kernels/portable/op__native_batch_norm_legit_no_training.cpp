#include "orch_selected/op__native_batch_norm_legit_no_training.h"

#include "batch_norm.h"
#include "orch/kernel.h"

namespace orch::portable {

// aten::_native_batch_norm_legit_no_training.out(Tensor input, Tensor? weight,
//   Tensor? bias, Tensor running_mean, Tensor running_var, float momentum,
//   float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)
//   -> (Tensor(a!), Tensor(b!), Tensor(c!))
Error _native_batch_norm_legit_no_training_out(const Args& args) {
  constexpr DtypeSet kDtypes =
      selected::aten__native_batch_norm_legit_no_training_out;
  return batch_norm<kDtypes.bits>(args, 6);
}

}  // namespace orch::portable
