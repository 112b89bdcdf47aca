#include "orch_selected/op_bmm.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/limits.h"
#include "util/matmul.h"

namespace orch::portable {

// aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)
Error bmm_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& mat2 = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dim == 3 && mat2.dim == 3 && self.size(0) == mat2.size(0) &&
                 self.size(2) == mat2.size(1),
             Error::InvalidArgument);
  ORCH_CHECK(self.dtype == out.dtype && mat2.dtype == out.dtype,
             Error::InvalidArgument);
  const int32_t sizes[] = {self.size(0), self.size(1), mat2.size(2)};
  ORCH_TRY(resize_output(out, sizes, self, mat2));
  constexpr DtypeSet kDtypes = selected::aten_bmm_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Strides a(self);
    const Strides b(mat2);
    const Strides c(out);
    for (int32_t i = 0; i < sizes[0]; ++i) {
      matmul<T>({self.data<T>() + i * a[0], a[1], a[2]},
                {mat2.data<T>() + i * b[0], b[1], b[2]},
                {out.mutable_data<T>() + i * c[0], c[1], c[2]}, sizes[1],
                self.size(2), sizes[2],
                [](Compute<T> sum, int32_t, int32_t) { return sum; });
    }
    return Error::Ok;
  });
}

// The same of floats, within limits that follow.
Error bmm_limited_out(const Args& args) { return call_limited(bmm_out, args); }

}  // namespace orch::portable
