#include "orch_selected/op__adaptive_avg_pool2d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

template <typename T>
void average(const Tensor& self, Tensor& out) {
  using C = Compute<T>;
  const Planes x(self, 0);
  const Planes y(out, 0);
  each_adaptive_window(
      x, y,
      [&](int32_t n, int32_t h, int32_t w, const AdaptiveWindow& rows,
          const AdaptiveWindow& columns) {
        const C count = from_int<C>((rows.last - rows.first) *
                                    (columns.last - columns.first));
        for (int32_t c = 0; c < y.size[1]; ++c) {
          const T* plane = self.data<T>() + n * x.stride[0] + c * x.stride[1];
          C sum = 0;
          for (int32_t i = rows.first; i < rows.last; ++i) {
            const T* item =
                plane + i * x.stride[2] + columns.first * x.stride[3];
            for (int32_t j = columns.first; j < columns.last; ++j) {
              sum += static_cast<C>(*item);
              item += x.stride[3];
            }
          }
          out.mutable_data<T>()[n * y.stride[0] + c * y.stride[1] +
                                h * y.stride[2] + w * y.stride[3]] =
              static_cast<T>(divide(sum, count));
        }
      });
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
