#include "orch_selected/op_fill.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/copy.h"
#include "util/fill.h"

namespace orch::portable {

// aten::fill.Scalar_out(Tensor self, Scalar value, *, Tensor(a!) out)
//   -> Tensor(a!)
Error fill_Scalar_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  return fill<selected::aten_fill_Scalar_out.bits>(out, args.scalar(1));
}

// aten::fill.Tensor_out(Tensor self, Tensor value, *, Tensor(a!) out)
//   -> Tensor(a!)
Error fill_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& value = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && value.dim == 0, Error::InvalidArgument);
  ORCH_TRY(resize_output(out, self.sizes(), value));
  constexpr DtypeSet kFrom = selected::aten_fill_Tensor_out_of_value;
  constexpr DtypeSet kTo = selected::aten_fill_Tensor_out_of_out;
  // Converted once, on the stack.
  uint64_t bits = 0;
  Tensor item = out;
  item.memory = &bits;
  StridedLoop once(1);
  ORCH_TRY((copy_rows<kFrom.bits, kTo.bits>(once, value, item)));
  return fill_bits<kTo.bits>(out, bits);
}

}  // namespace orch::portable
