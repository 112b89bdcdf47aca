#include "orch_selected/op_full.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/fill.h"

namespace orch::portable {

// aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out)
//   -> Tensor(a!)
Error full_out(const Args& args) {
  const IntList size = args.int_list(0);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(size.size() == out.dim, Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < out.dim; ++i) ORCH_TRY(read_int(size[i], 0, sizes[i]));
  ORCH_TRY(resize_output(out, {sizes, out.dim}));
  return fill<selected::aten_full_out.bits>(out, args.scalar(1));
}

}  // namespace orch::portable
