#include "orch/kernel.h"
#include "util/check.h"
#include "util/split.h"

namespace orch::portable {

// aten::split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes,
//   int dim=0, *, Tensor(a!)[] out) -> ()
Error split_with_sizes_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList split_sizes = args.int_list(1);
  const TensorList outs = args.tensor_list(3);

  int dim = 0;
  ORCH_CHECK(self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(2), self.dim, dim));
  ORCH_CHECK(outs.size() == split_sizes.size(), Error::InvalidArgument);
  int64_t left = self.size(dim);
  for (int i = 0; i < outs.size(); ++i) {
    const int64_t size = split_sizes[i];
    ORCH_CHECK(size >= 0 && size <= left, Error::InvalidArgument);
    left -= size;
  }
  ORCH_CHECK(left == 0, Error::InvalidArgument);
  return split(self, dim, outs,
               [&](int i) { return static_cast<int32_t>(split_sizes[i]); });
}

}  // namespace orch::portable
