#include "orch_selected/op_adaptive_max_pool3d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"
#include "util/pool_lanes.h"
#include "util/volumes.h"

namespace orch::portable {
namespace {

template <typename T>
void largest(const Tensor& self, Tensor& out, Tensor& indices) {
  using C = Compute<T>;
  const Volumes x(self);
  const Volumes y(out);
  const Volumes z(indices);
  const FlushFlags flags;
  constexpr int32_t kStep[] = {1, 1, 1};
  each_window(
      y,
      [&](int axis, int32_t o) {
        return AdaptiveRange(x.size[2 + axis], y.size[2 + axis], o);
      },
      [&](int32_t n, int32_t d, int32_t h, int32_t w,
          const AdaptiveRange& depth, const AdaptiveRange& rows,
          const AdaptiveRange& columns) {
        const WindowItems window = {{depth.size(), rows.size(), columns.size()},
                                    {x.stride[2], x.stride[3], x.stride[4]},
                                    {x.size[3] * x.size[4], x.size[4], 1}};
        const int32_t index =
            (depth.first * x.size[3] + rows.first) * x.size[4] + columns.first;
        const T* const volume = self.data<T>() + n * x.stride[0];
        const T* const first =
            volume + x.at(0, depth.first, rows.first, columns.first);
        T* const target = out.mutable_data<T>() + y.at(n, d, h, w);
        int64_t* const places =
            indices.mutable_data<int64_t>() + z.at(n, d, h, w);
        each_channel<T>(
            0, y.size[1],
            [&](int32_t c) {
              target[c * y.stride[1]] = static_cast<T>(
                  largest_of<C>(volume + c * x.stride[1], x, depth, rows,
                                columns, kStep, places[c * z.stride[1]]));
            },
            [&](int32_t c) {
              return largest_of_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], z.stride[1]}, first,
                  window, index, target, places);
            });
      });
}

}  // namespace

// aten::adaptive_max_pool3d.out(Tensor self, int[3] output_size, *,
//   Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
Error adaptive_max_pool3d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);
  Tensor& indices = args.tensor(3);

  ORCH_TRY(prepare_adaptive_max_pool<3>(args));
  constexpr DtypeSet kDtypes = selected::aten_adaptive_max_pool3d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    largest<typename decltype(type)::type>(self, out, indices);
    return Error::Ok;
  });
}

}  // namespace orch::portable
