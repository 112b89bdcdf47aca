#include "orch_selected/op_scaled_add.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/dtype.h"

namespace my_ops {

using namespace orch;

// my_ops::scaled_add.out(Tensor self, Tensor other, float scale, *,
//   Tensor(a!) out) -> Tensor(a!)
Error scaled_add_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(self.dtype == other.dtype && self.dtype == out.dtype,
             Error::InvalidArgument);
  ORCH_CHECK(same_sizes(self, other), Error::InvalidArgument);
  ORCH_TRY(resize(out, self.sizes()));
  constexpr DtypeSet kDtypes = selected::my_ops_scaled_add_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C scale = static_cast<C>(args.number(2));
    StridedLoop loop = loop_over(out, self, other);
    for (; loop.valid(); loop.next()) {
      T* to = out.mutable_data<T>() + loop.offset(0);
      const T* a = self.data<T>() + loop.offset(1);
      const T* b = other.data<T>() + loop.offset(2);
      for (int32_t i = 0; i < loop.row_size(); ++i) {
        const C sum = static_cast<C>(a[i * loop.row_stride(1)]) +
                      scale * static_cast<C>(b[i * loop.row_stride(2)]);
        to[i * loop.row_stride(0)] = static_cast<T>(sum);
      }
    }
    return Error::Ok;
  });
}

}  // namespace my_ops
