#include "orch_selected/op_polar.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/broadcast.h"
#include "util/complex.h"
#include "util/dtype.h"

namespace orch::portable {

// aten::polar.out(Tensor abs, Tensor angle, *, Tensor(a!) out) -> Tensor(a!)
Error polar_out(const Args& args) {
  const Tensor& abs = args.tensor(0);
  const Tensor& angle = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(angle.dtype == abs.dtype, Error::InvalidArgument);
  ORCH_TRY(resize_broadcast(out, abs, angle));
  constexpr DtypeSet kDtypes = selected::aten_polar_out;
  return switch_dtype<kDtypes.bits>(abs.dtype, [&](auto type) -> Error {
    using T = typename decltype(type)::type;
    ORCH_CHECK(out.dtype == DtypeOf<Complex<T>>::value, Error::InvalidArgument);
    StridedLoop loop = loop_over(out, abs, angle);
    for (; loop.valid(); loop.next()) {
      for (int32_t i = 0; i < loop.row_size(); ++i) {
        const T size = abs.data<T>()[loop.offset(1) + i * loop.row_stride(1)];
        const T turn = angle.data<T>()[loop.offset(2) + i * loop.row_stride(2)];
        out.mutable_data<Complex<T>>()[loop.offset(0) +
                                       i * loop.row_stride(0)] = {
            size * math::cos(turn), size * math::sin(turn)};
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
