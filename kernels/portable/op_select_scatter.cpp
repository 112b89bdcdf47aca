#include "orch_selected/op_select_scatter.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/scatter.h"

namespace orch::portable {

// aten::select_scatter.out(Tensor self, Tensor src, int dim, SymInt index, *,
//   Tensor(a!) out) -> Tensor(a!)
Error select_scatter_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& src = args.tensor(1);
  int64_t index = args.integer(3);
  Tensor& out = args.tensor(4);

  int dim = 0;
  ORCH_CHECK(self.dtype == out.dtype && self.dim > 0 && src.dim + 1 == self.dim,
             Error::InvalidArgument);
  ORCH_TRY(read_dim(args.integer(2), self.dim, dim));
  const int32_t size = self.size(dim);
  ORCH_CHECK(index >= -size && index < size, Error::InvalidArgument);
  if (index < 0) index += size;
  // The selected items, as if `src` had the dimension.
  const Strides strides(src);
  ItemView view{};
  int32_t sizes[kMaxDim];
  for (int i = 0, own = 0; i < self.dim; ++i) {
    sizes[i] = 1;
    if (i == dim) continue;
    sizes[i] = src.size(own);
    view.stride[i] = strides[own++];
    ORCH_CHECK(sizes[i] == self.size(i), Error::InvalidArgument);
  }
  ORCH_TRY(resize_output(out, self.sizes(), src));
  ItemView to = items_of(out);
  to.offset = static_cast<int32_t>(index) * to.stride[dim];
  constexpr DtypeSet kFrom = selected::aten_select_scatter_out_of_src;
  constexpr DtypeSet kTo = selected::aten_select_scatter_out_of_out;
  return scatter<kFrom.bits, kTo.bits>(self, src, out, to, sizes, view);
}

}  // namespace orch::portable
