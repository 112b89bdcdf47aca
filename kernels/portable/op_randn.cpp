#include "orch_selected/op_randn.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/random.h"

namespace orch::portable {

// aten::randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)
Error randn_out(const Args& args) {
  Tensor& out = args.tensor(1);
  constexpr DtypeSet kDtypes = selected::aten_randn_out;
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY(resize_to_list(out, args.int_list(0)));
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.mutable_data<T>();
    for (int32_t left = out.numel(); left > 0; left -= 2) {
      Compute<T> x;
      Compute<T> y;
      normal(x, y);
      *to++ = static_cast<T>(x);
      if (left > 1) *to++ = static_cast<T>(y);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
