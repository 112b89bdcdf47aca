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
  ORCH_TRY(AlongDim::check(self, dim, index, nullptr));
  ORCH_TRY(resize_output(out, index.sizes(), self, index));
  if (index.numel() == 0) return Error::Ok;
  AlongDim along(self, dim, index, out);
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (StridedLoop& loop = along.loop; loop.valid(); loop.next()) {
      T* const to = out.mutable_data<T>() + loop.offset(2);
      const int32_t to_step = loop.row_stride(2);
      for (int32_t i = 0, count = loop.row_size(); i < count; ++i) {
        int32_t from;
        ORCH_TRY(along.load(i, from));
        to[i * to_step] = self.data<T>()[from];
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
