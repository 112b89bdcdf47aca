#include "orch/kernel.h"
#include "util/check.h"
#include "util/split.h"

namespace orch::portable {

// aten::split_copy.Tensor_out(Tensor self, SymInt split_size, int dim=0, *,
//   Tensor(a!)[] out) -> ()
Error split_copy_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t split_size = args.integer(1);
  const TensorList outs = args.tensor_list(3);

  int dim = 0;
  ORCH_CHECK(self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(2), self.dim, dim));
  const int32_t whole = self.size(dim);
  ORCH_CHECK(split_size > 0 || (split_size == 0 && whole == 0),
             Error::InvalidArgument);
  // A dimension without items has one part.
  const int32_t step =
      split_size < whole ? static_cast<int32_t>(split_size) : whole;
  const int32_t count = whole == 0 ? 1 : (whole - 1) / step + 1;
  ORCH_CHECK(outs.size() == count, Error::InvalidArgument);
  return split(self, dim, outs, [&](int i) {
    return i < count - 1 ? step : whole - (count - 1) * step;
  });
}

}  // namespace orch::portable
