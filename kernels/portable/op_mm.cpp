#include "orch_selected/op_mm.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/limits.h"
#include "util/matmul.h"

namespace orch::portable {

// aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)
Error mm_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& mat2 = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_TRY(prepare_matmul(self, mat2, out));
  constexpr DtypeSet kDtypes = selected::aten_mm_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    matmul<T>(self, mat2, out,
              [](Compute<T> sum, int32_t, int32_t) { return sum; });
    return Error::Ok;
  });
}

// The same of floats, within limits that follow.
Error mm_limited_out(const Args& args) { return call_limited(mm_out, args); }

}  // namespace orch::portable
