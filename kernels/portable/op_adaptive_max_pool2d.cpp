#include "orch_selected/op_adaptive_max_pool2d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/pool_lanes.h"

namespace orch::portable {
namespace {

template <typename T>
ORCH_HOT void largest(const Tensor& self, Tensor& out, Tensor& indices) {
  using C = Compute<T>;
  const Planes x(self, 0);
  const Planes y(out, 0);
  const Planes z(indices, 0);
  const FlushFlags flags;
  if (y.size[2] == 0 || y.size[3] == 0) return;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    AdaptiveWindow rows(x.size[2], y.size[2]);
    for (int32_t h = 0; h < y.size[2]; ++h, rows.next()) {
      AdaptiveWindow columns(x.size[3], y.size[3]);
      for (int32_t w = 0; w < y.size[3]; ++w, columns.next()) {
        const WindowItems window = {{1, rows.size(), columns.size()},
                                    {0, x.stride[2], x.stride[3]},
                                    {0, x.size[3], 1}};
        const int32_t index = rows.first * x.size[3] + columns.first;
        const T* const plane = self.data<T>() + n * x.stride[0];
        const T* const first =
            plane + rows.first * x.stride[2] + columns.first * x.stride[3];
        T* const target = out.mutable_data<T>() + n * y.stride[0] +
                          h * y.stride[2] + w * y.stride[3];
        int64_t* const places = indices.mutable_data<int64_t>() +
                                n * z.stride[0] + h * z.stride[2] +
                                w * z.stride[3];
        each_channel<T>(
            0, y.size[1],
            [&](int32_t c) {
              int32_t at;
              target[c * y.stride[1]] = static_cast<T>(largest_of<C>(
                  plane + c * x.stride[1], x, rows, columns, 1, 1, at));
              places[c * z.stride[1]] = at;
            },
            [&](int32_t c) {
              return largest_of_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], z.stride[1]}, first,
                  window, index, target, places);
            });
      }
    }
  }
}

}  // namespace

// aten::adaptive_max_pool2d.out(Tensor self, int[2] output_size, *,
//   Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
Error adaptive_max_pool2d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);
  Tensor& indices = args.tensor(3);

  ORCH_TRY(prepare_adaptive_max_pool<2>(args));
  constexpr DtypeSet kDtypes = selected::aten_adaptive_max_pool2d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    largest<typename decltype(type)::type>(self, out, indices);
    return Error::Ok;
  });
}

}  // namespace orch::portable
