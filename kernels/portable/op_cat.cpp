#include "orch_selected/op_cat.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/join.h"
#include "util/promote.h"

namespace orch::portable {
namespace {

/// A tensor that may stand among those of any rank: it adds nothing.
bool is_nothing(const Tensor& tensor) {
  return tensor.dim == 1 && tensor.size(0) == 0;
}

/// Checks the inputs. `sizes`: those of the output. Errors: InvalidArgument,
/// ShapeTooLarge.
Error read_inputs(const TensorList& tensors, int64_t wrapped_dim,
                  const Tensor& out, int& dim, int32_t* sizes, size_t& rank) {
  ORCH_CHECK(tensors.size() > 0, Error::InvalidArgument);
  const Tensor* first = nullptr;
  for (int i = 0; i < tensors.size(); ++i) {
    const Tensor* const tensor = tensors[i];
    ORCH_CHECK(tensor != nullptr && tensor->dim > 0, Error::InvalidArgument);
    ORCH_CHECK(can_cast(tensor->dtype, out.dtype), Error::InvalidArgument);
    if (first == nullptr || is_nothing(*first)) first = tensor;
  }
  ORCH_TRY(read_dim(wrapped_dim, first->dim, dim));
  rank = first->dim;
  for (int d = 0; d < first->dim; ++d) sizes[d] = first->size(d);
  int64_t total = 0;
  for (int i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = *tensors[i];
    if (is_nothing(tensor)) continue;
    ORCH_CHECK(tensor.dim == first->dim, Error::InvalidArgument);
    for (int d = 0; d < first->dim; ++d) {
      ORCH_CHECK(d == dim || tensor.size(d) == sizes[d],
                 Error::InvalidArgument);
    }
    total += tensor.size(dim);
    ORCH_CHECK(total <= INT32_MAX, Error::ShapeTooLarge);
  }
  sizes[dim] = static_cast<int32_t>(total);
  for (int i = 0; i < tensors.size(); ++i) {
    ORCH_CHECK(keeps_sizes(*tensors[i], out, {sizes, rank}),
               Error::InvalidArgument);
  }
  return Error::Ok;
}

}  // namespace

// aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)
Error cat_out(const Args& args) {
  const TensorList tensors = args.tensor_list(0);
  Tensor& out = args.tensor(2);

  constexpr DtypeSet kDtypes = selected::aten_cat_out;
  int dim = 0;
  int32_t sizes[kMaxDim];
  size_t rank = 0;
  ORCH_TRY(read_inputs(tensors, args.integer(1), out, dim, sizes, rank));
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  for (int i = 0; i < tensors.size(); ++i) {
    ORCH_CHECK(kDtypes.has(tensors[i]->dtype), Error::DtypeNotSelected);
  }
  ORCH_TRY(set_sizes(out, {sizes, rank}));

  const Strides strides(out);
  int32_t offset = 0;
  for (int i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = *tensors[i];
    if (is_nothing(tensor)) continue;
    ORCH_TRY(join_part<kDtypes.bits>(out, offset, tensor.dims, tensor,
                                     items_of(tensor)));
    offset += tensor.size(dim) * strides[dim];
  }
  return Error::Ok;
}

}  // namespace orch::portable
