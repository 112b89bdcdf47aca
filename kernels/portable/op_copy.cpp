#include "orch_selected/op_copy.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/copy.h"

namespace orch::portable {

// aten::copy.out(Tensor self, Tensor src, bool non_blocking=False, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// `self` gives sizes and dtype.
Error copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& source = args.tensor(1);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(check_fills(source, self.sizes()));
  constexpr DtypeSet kFrom = selected::aten_copy_out_of_src;
  constexpr DtypeSet kTo = selected::aten_copy_out_of_out;
  ORCH_TRY(resize_output(out, self.sizes(), self, source));
  StridedLoop loop = loop_over(out, source, source);
  return copy_rows<kFrom.bits, kTo.bits>(loop, source, out);
}

}  // namespace orch::portable
