#include "orch_selected/op__pdist_forward.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/distance.h"

namespace orch::portable {

// aten::_pdist_forward.out(Tensor self, float p=2, *, Tensor(a!) out)
//   -> Tensor(a!)
//
// Distances of row 0 from all below it, of row 1, and so on.
Error _pdist_forward_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const double p = args.real(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype && self.dim == 2, Error::InvalidArgument);
  ORCH_TRY(check_norm(p));
  const int32_t rows = self.size(0);
  const int64_t count = int64_t{rows} * (rows - 1) / 2;
  ORCH_CHECK(count <= INT32_MAX, Error::ShapeTooLarge);
  const int32_t sizes[] = {static_cast<int32_t>(count)};
  ORCH_TRY(resize_output(out, sizes, self));
  const Strides from(self);
  constexpr DtypeSet kDtypes = selected::aten__pdist_forward_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    for (int32_t i = 0; i < rows; ++i) {
      const Row<T> a = {self.data<T>() + i * from[0], from[1]};
      for (int32_t j = i + 1; j < rows; ++j) {
        const Row<T> b = {self.data<T>() + j * from[0], from[1]};
        *to++ = static_cast<T>(
            distance(a, b, self.size(1), static_cast<Compute<T>>(p), true));
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
