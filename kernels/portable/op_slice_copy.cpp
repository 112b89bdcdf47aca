#include "orch/kernel.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::portable {
namespace {

/// A bound of a slice as Python reads it: counted from the end if negative,
/// limited to 0 and `size`.
int32_t slice_bound(int64_t value, int32_t size) {
  if (value < 0) value += size;
  if (value < 0) return 0;
  return value < size ? static_cast<int32_t>(value) : size;
}

}  // namespace

// aten::slice_copy.Tensor_out(Tensor self, int dim=0, SymInt? start=None,
//   SymInt? end=None, SymInt step=1, *, Tensor(a!) out) -> Tensor(a!)
Error slice_copy_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t wide_step = args.integer(4);
  Tensor& out = args.tensor(5);

  int dim = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim > 0, Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(1), self.dim, dim));
  ORCH_CHECK(wide_step > 0, Error::InvalidArgument);
  const int32_t size = self.size(dim);
  const int32_t start = args.has(2) ? slice_bound(args.integer(2), size) : 0;
  const int32_t end = args.has(3) ? slice_bound(args.integer(3), size) : size;
  // A step past the end gives one item, whatever its length.
  const int32_t step = wide_step < size ? static_cast<int32_t>(wide_step)
                       : size > 0       ? size
                                        : 1;
  int32_t sizes[kMaxDim];
  for (int i = 0; i < self.dim; ++i) sizes[i] = self.size(i);
  sizes[dim] = end > start ? (end - start - 1) / step + 1 : 0;
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));

  const Strides strides(self);
  ItemView view{};
  for (int i = 0; i < self.dim; ++i) view.stride[i] = strides[i];
  view.offset = start * strides[dim];
  // Of one item the step is not used, and could be too large.
  if (sizes[dim] > 1) view.stride[dim] *= step;
  move_view(out, 0, sizes, self, view);
  return Error::Ok;
}

}  // namespace orch::portable
