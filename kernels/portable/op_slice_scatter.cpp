#include "orch_selected/op_slice_scatter.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/scatter.h"
#include "util/slice.h"

namespace orch::portable {

// aten::slice_scatter.out(Tensor self, Tensor src, int dim=0,
//   SymInt? start=None, SymInt? end=None, SymInt step=1, *, Tensor(a!) out)
//   -> Tensor(a!)
Error slice_scatter_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& src = args.tensor(1);
  Tensor& out = args.tensor(6);

  ORCH_CHECK(self.dtype == out.dtype && src.dim == self.dim,
             Error::InvalidArgument);
  Slice slice;
  ORCH_TRY(read_slice(args, 2, self, slice));
  for (int i = 0; i < self.dim; ++i) {
    ORCH_CHECK(src.size(i) == (i == slice.dim ? slice.count : self.size(i)),
               Error::InvalidArgument);
  }
  ORCH_TRY(resize_output(out, self.sizes(), src));
  ItemView to = items_of(out);
  to.offset = slice.start * to.stride[slice.dim];
  to.stride[slice.dim] *= slice.step;
  constexpr DtypeSet kFrom = selected::aten_slice_scatter_out_of_src;
  constexpr DtypeSet kTo = selected::aten_slice_scatter_out_of_out;
  return scatter<kFrom.bits, kTo.bits>(self, src, out, to, src.dims,
                                       items_of(src));
}

}  // namespace orch::portable
