#include "orch_selected/op_gather.h"

#include "orch/kernel.h"
#include "util/along_dim.h"
#include "util/dtype.h"

namespace orch::portable {

// aten::gather.out(Tensor self, int dim, Tensor index, *,
//   bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)
//
// sparse_grad is for training.
Error gather_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t dim = args.integer(1);
  const Tensor& index = args.tensor(2);
  Tensor& out = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_gather_out;
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY_DATA(AlongDim::check(self, dim, index, nullptr));
  ORCH_TRY(resize_output(out, index.sizes(), self, index));
  if (index.numel() == 0) return Error::Ok;
  AlongDim along(self, dim, index, out);
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const from = self.data<T>();
    T* const to = out.mutable_data<T>();
    return along.each([from, to](int32_t at, int32_t k) { to[k] = from[at]; });
  });
}

}  // namespace orch::portable
