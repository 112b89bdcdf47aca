#include "orch_selected/op_scalar_tensor.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/fill.h"

namespace orch::portable {

// aten::scalar_tensor.out(Scalar s, *, Tensor(a!) out) -> Tensor(a!)
Error scalar_tensor_out(const Args& args) {
  Tensor& out = args.tensor(1);
  ORCH_CHECK(out.dim == 0, Error::InvalidArgument);
  return fill<selected::aten_scalar_tensor_out.bits>(out, args.scalar(0));
}

}  // namespace orch::portable
