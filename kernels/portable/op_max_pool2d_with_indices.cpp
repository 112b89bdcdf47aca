#include "orch_selected/op_max_pool2d_with_indices.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/pool.h"
#include "util/pool_lanes.h"

namespace orch::portable {
namespace {

template <typename T>
ORCH_HOT void max_pool(const Pool<2>& pool, const Tensor& self, Tensor& out,
                       Tensor& indices) {
  using C = typename Choose<kIsHalf<T>, float, T>::type;
  const Planes x(self, 0);
  const Planes y(out, 0);
  const Planes z(indices, 0);
  const FlushFlags flags;
  const int32_t step_h = pool.axes[0].dilation;
  const int32_t step_w = pool.axes[1].dilation;
  // Channels in groups, for the sake of caches.
  constexpr int32_t kGroup = 8;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t c0 = 0; c0 < y.size[1]; c0 += kGroup) {
      const int32_t last = c0 + kGroup < y.size[1] ? c0 + kGroup : y.size[1];
      for (int32_t h = 0; h < y.size[2]; ++h) {
        const DilatedWindow rows(pool.axes[0], h);
        for (int32_t w = 0; w < y.size[3]; ++w) {
          const DilatedWindow columns(pool.axes[1], w);
          const WindowItems window = {
              {1, count_of(rows.first, rows.last, step_h),
               count_of(columns.first, columns.last, step_w)},
              {0, step_h * x.stride[2], step_w * x.stride[3]},
              {0, step_h * x.size[3], step_w}};
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
              c0, last,
              [&](int32_t c) {
                int32_t at;
                target[c * y.stride[1]] = static_cast<T>(
                    largest_of<C>(plane + c * x.stride[1], x, rows, columns,
                                  step_h, step_w, at));
                places[c * z.stride[1]] = at;
              },
              [&](int32_t c) {
                return largest_of_channels(
                    {c, last, x.stride[1], y.stride[1], z.stride[1]}, first,
                    window, index, target, places);
              });
        }
      }
    }
  }
}

}  // namespace

// aten::max_pool2d_with_indices.out(Tensor self, int[2] kernel_size,
//   int[2] stride=[], int[2] padding=0, int[2] dilation=1,
//   bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices)
//   -> (Tensor(a!), Tensor(b!))
Error max_pool2d_with_indices_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(6);
  Tensor& indices = args.tensor(7);

  Pool<2> pool;
  ORCH_TRY(prepare_max_pool(args, pool));
  constexpr DtypeSet kDtypes = selected::aten_max_pool2d_with_indices_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    max_pool<typename decltype(type)::type>(pool, self, out, indices);
    return Error::Ok;
  });
}

}  // namespace orch::portable
