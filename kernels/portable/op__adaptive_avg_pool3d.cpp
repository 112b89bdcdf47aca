#include "orch_selected/op__adaptive_avg_pool3d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"
#include "util/pool_lanes.h"
#include "util/scalar.h"
#include "util/volumes.h"

namespace orch::portable {
namespace {

template <typename T>
void average(const Tensor& self, Tensor& out) {
  using C = Compute<T>;
  const Volumes x(self);
  const Volumes y(out);
  const FlushFlags flags;
  each_window(
      y,
      [&](int axis, int32_t o) {
        return AdaptiveRange(x.size[2 + axis], y.size[2 + axis], o);
      },
      [&](int32_t n, int32_t d, int32_t h, int32_t w,
          const AdaptiveRange& depth, const AdaptiveRange& rows,
          const AdaptiveRange& columns) {
        const C count =
            from_int<C>(int64_t{depth.size()} * rows.size() * columns.size());
        const WindowItems window = {{depth.size(), rows.size(), columns.size()},
                                    {x.stride[2], x.stride[3], x.stride[4]},
                                    {}};
        const T* const volume = self.data<T>() + n * x.stride[0];
        const T* const first =
            volume + x.at(0, depth.first, rows.first, columns.first);
        T* const target = out.mutable_data<T>() + y.at(n, d, h, w);
        each_channel<T>(
            0, y.size[1],
            [&](int32_t c) {
              target[c * y.stride[1]] = static_cast<T>(divide(
                  sum_of<C>(volume + c * x.stride[1], x, depth, rows, columns),
                  count));
            },
            [&](int32_t c) {
              return average_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], 0}, first, window,
                  count, target);
            });
      });
}

}  // namespace

// aten::_adaptive_avg_pool3d.out(Tensor self, SymInt[3] output_size, *,
//   Tensor(a!) out) -> Tensor(a!)
Error _adaptive_avg_pool3d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(resize_adaptive<3>(self, args.int_list(1), out));
  constexpr DtypeSet kDtypes = selected::aten__adaptive_avg_pool3d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    average<typename decltype(type)::type>(self, out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
