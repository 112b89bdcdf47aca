#include <string.h>

#include "orch/kernel.h"

namespace orch::prim_ops {

// executorch_prim::et_copy_index.tensor(Tensor(a!) copy_to, Tensor copy_from,
//                                       SymInt index) -> ()
//
// Row `index` of `copy_to` becomes `copy_from`. A loop writes row after row: if
// sizes may change, the row written is the last one, and the first one decides
// on the other sizes.
Error et_copy_index_tensor(const Args& args) {
  Tensor& to = args.tensor(0);
  const Tensor& from = args.tensor(1);
  const int64_t index = args.integer(2);

  ORCH_CHECK(to.dtype == from.dtype, Error::InvalidArgument);
  ORCH_CHECK(to.contiguous() && from.contiguous(), Error::InvalidArgument);
  ORCH_CHECK(to.dim == from.dim + 1, Error::InvalidArgument);
  ORCH_CHECK(index >= 0 && index < INT32_MAX, Error::InvalidArgument);
  const bool dynamic = (to.flags & Tensor::kDynamic) != 0;
  int32_t sizes[kMaxDim];
  sizes[0] = dynamic ? static_cast<int32_t>(index + 1) : to.size(0);
  ORCH_CHECK(index < sizes[0], Error::InvalidArgument);
  for (int i = 0; i < from.dim; ++i) {
    sizes[i + 1] = from.size(i);
    ORCH_CHECK(index == 0 || to.size(i + 1) == from.size(i),
               Error::InvalidArgument);
  }
  ORCH_TRY(resize(to, {sizes, to.dim}));
  // All rows up to this one are within the memory of `to`.
  const size_t bytes = from.nbytes();
  uint8_t* const row =
      to.mutable_data<uint8_t>() + static_cast<size_t>(index) * bytes;
  if (bytes != 0) memmove(row, from.memory, bytes);
  return Error::Ok;
}

}  // namespace orch::prim_ops
