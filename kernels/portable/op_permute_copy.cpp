#include "orch_selected/op_permute_copy.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::permute_copy.out(Tensor self, int[] dims, *, Tensor(a!) out)
//   -> Tensor(a!)
Error permute_copy_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const IntList dims = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && dims.size() == self.dim,
             Error::InvalidArgument);
  int from[kMaxDim];  // dimension of self for each dimension of out
  int32_t sizes[kMaxDim];
  unsigned seen = 0;
  for (int i = 0; i < self.dim; ++i) {
    ORCH_TRY(read_dim(dims[i], self.dim, from[i]));
    ORCH_CHECK(((seen >> from[i]) & 1U) == 0, Error::InvalidArgument);
    seen |= 1U << from[i];
    sizes[i] = self.size(from[i]);
  }
  ORCH_TRY(resize_output(out, {sizes, self.dim}, self));

  const Strides self_strides(self);
  const Strides out_strides(out);
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(out.size(d), out_strides[d], self_strides[from[d]]);
  }
  if (kFavourSpeed) loop.lengthen_rows();
  constexpr DtypeSet kDtypes = selected::aten_permute_copy_out;
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    map_rows(loop, self.data<T>(), out.mutable_data<T>(),
             [](T value) { return value; });
    return Error::Ok;
  });
}

}  // namespace orch::portable
