#include "orch_selected/op_stack.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/indexing.h"
#include "util/join.h"

namespace orch::portable {

// aten::stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)
Error stack_out(const Args& args) {
  const TensorList tensors = args.tensor_list(0);
  Tensor& out = args.tensor(2);

  constexpr DtypeSet kDtypes = selected::aten_stack_out;
  ORCH_CHECK(tensors.size() > 0 && tensors[0] != nullptr,
             Error::InvalidArgument);
  const Tensor& first = *tensors[0];
  ORCH_CHECK(first.dim < kMaxDim, Error::InvalidArgument);
  const int rank = first.dim + 1;
  int dim = 0;
  ORCH_TRY(read_dim(args.integer(1), rank, dim));
  for (int i = 0; i < tensors.size(); ++i) {
    ORCH_CHECK(tensors[i] != nullptr && same_sizes(*tensors[i], first) &&
                   can_cast(tensors[i]->dtype, out.dtype),
               Error::InvalidArgument);
    ORCH_CHECK(kDtypes.has(tensors[i]->dtype), Error::DtypeNotSelected);
  }
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  int32_t sizes[kMaxDim];
  for (int i = 0, own = 0; i < rank; ++i) {
    sizes[i] = i == dim ? tensors.size() : first.size(own++);
  }
  const Span<const int32_t> out_sizes = {sizes, static_cast<size_t>(rank)};
  ORCH_CHECK(keeps_sizes(tensors, out, out_sizes), Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, out_sizes));

  const Strides to(out);
  sizes[dim] = 1;
  for (int i = 0; i < tensors.size(); ++i) {
    const Strides strides(*tensors[i]);
    ItemView view{};
    for (int d = 0, own = 0; d < rank; ++d) {
      if (d != dim) view.stride[d] = strides[own++];
    }
    ORCH_TRY(
        join_part<kDtypes.bits>(out, i * to[dim], sizes, *tensors[i], view));
  }
  return Error::Ok;
}

}  // namespace orch::portable
