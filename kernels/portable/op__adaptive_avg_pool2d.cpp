#include "orch_selected/op__adaptive_avg_pool2d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/pool_lanes.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

template <typename T>
ORCH_HOT void average(const Tensor& self, Tensor& out) {
  using C = Compute<T>;
  const Planes x(self, 0);
  const Planes y(out, 0);
  const FlushFlags flags;
  if (y.size[2] == 0 || y.size[3] == 0) return;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    AdaptiveWindow rows(x.size[2], y.size[2]);
    for (int32_t h = 0; h < y.size[2]; ++h, rows.next()) {
      AdaptiveWindow columns(x.size[3], y.size[3]);
      for (int32_t w = 0; w < y.size[3]; ++w, columns.next()) {
        const C count = from_int<C>(rows.size() * columns.size());
        const WindowItems window = {{1, rows.size(), columns.size()},
                                    {0, x.stride[2], x.stride[3]},
                                    {}};
        const T* const plane = self.data<T>() + n * x.stride[0];
        const T* const first =
            plane + rows.first * x.stride[2] + columns.first * x.stride[3];
        T* const target = out.mutable_data<T>() + n * y.stride[0] +
                          h * y.stride[2] + w * y.stride[3];
        each_channel<T>(
            0, y.size[1],
            [&](int32_t c) {
              const T* const items = plane + c * x.stride[1];
              target[c * y.stride[1]] = static_cast<T>(
                  divide(sum_of<C>(items, x, rows, columns), count));
            },
            [&](int32_t c) {
              return average_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], 0}, first, window,
                  count, target);
            });
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
