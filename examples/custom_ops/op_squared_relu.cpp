#include "orch_selected/op_squared_relu.h"

#include "orch/kernel.h"
#include "squared_relu.h"
#include "util/dtype.h"
#include "util/unary.h"

namespace my_ops {

using namespace orch;

// my_ops::squared_relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error squared_relu_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(resize(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::my_ops_squared_relu_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    map_unary<T>(self, out, [](T x) { return squared_relu(x); });
    return Error::Ok;
  });
}

// The same for Float matrices whose dim order is 0, 1: its kernel key says so.
Error squared_relu_flat(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  ORCH_TRY(resize(out, self.sizes()));
  const float* from = self.data<float>();
  float* to = out.mutable_data<float>();
  for (int32_t left = out.numel(); left > 0; --left) {
    *to++ = squared_relu(*from++);
  }
  return Error::Ok;
}

}  // namespace my_ops
