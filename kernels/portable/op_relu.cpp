#include "orch_selected/op_relu.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace orch::portable {

// aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error relu_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(resize(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::aten_relu_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    // Not greater than 0 would lose NaN.
    map_unary<T>(self, out,
                 [](T value) { return is_negative(value) ? T(0) : value; });
    return Error::Ok;
  });
}

}  // namespace orch::portable
