#include "orch_selected/op__adaptive_avg_pool2d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

template <typename T>
ORCH_HOT void average(const Tensor& self, Tensor& out) {
  using C = Compute<T>;
  const Planes x(self, 0);
  const Planes y(out, 0);
  if (y.size[2] == 0 || y.size[3] == 0) return;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    AdaptiveWindow rows(x.size[2], y.size[2]);
    for (int32_t h = 0; h < y.size[2]; ++h, rows.next()) {
      AdaptiveWindow columns(x.size[3], y.size[3]);
      for (int32_t w = 0; w < y.size[3]; ++w, columns.next()) {
        const C count = from_int<C>((rows.last - rows.first) *
                                    (columns.last - columns.first));
        const T* plane = self.data<T>() + n * x.stride[0];
        T* target = out.mutable_data<T>() + n * y.stride[0] + h * y.stride[2] +
                    w * y.stride[3];
        for (int32_t c = y.size[1]; c > 0; --c) {
          *target =
              static_cast<T>(divide(sum_of<C>(plane, x, rows, columns), count));
          plane += x.stride[1];
          target += y.stride[1];
        }
      }
    }
  }
}

}  // namespace

// aten::_adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *,
//   Tensor(a!) out) -> Tensor(a!)
Error _adaptive_avg_pool2d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(resize_adaptive<2>(self, args.int_list(1), out));
  constexpr DtypeSet kDtypes = selected::aten__adaptive_avg_pool2d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    average<typename decltype(type)::type>(self, out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
