#include "orch_selected/op_max_pool3d_with_indices.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/pool.h"
#include "util/pool_lanes.h"
#include "util/volumes.h"

namespace orch::portable {
namespace {

template <typename T>
void max_pool(const Pool<3>& pool, const Tensor& self, Tensor& out,
              Tensor& indices) {
  using C = typename Choose<kIsHalf<T>, float, T>::type;
  const Volumes x(self);
  const Volumes y(out);
  const Volumes z(indices);
  const FlushFlags flags;
  const int32_t step[] = {pool.axes[0].dilation, pool.axes[1].dilation,
                          pool.axes[2].dilation};
  each_window(
      y,
      [&pool](int axis, int32_t o) {
        return DilatedWindow(pool.axes[axis], o);
      },
      [&](int32_t n, int32_t d, int32_t h, int32_t w,
          const DilatedWindow& depth, const DilatedWindow& rows,
          const DilatedWindow& columns) {
        const WindowItems window = {
            {count_of(depth.first, depth.last, step[0]),
             count_of(rows.first, rows.last, step[1]),
             count_of(columns.first, columns.last, step[2])},
            {step[0] * x.stride[2], step[1] * x.stride[3],
             step[2] * x.stride[4]},
            {step[0] * x.size[3] * x.size[4], step[1] * x.size[4], step[2]}};
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
                                columns, step, places[c * z.stride[1]]));
            },
            [&](int32_t c) {
              return largest_of_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], z.stride[1]}, first,
                  window, index, target, places);
            });
      });
}

}  // namespace

// aten::max_pool3d_with_indices.out(Tensor self, int[3] kernel_size,
//   int[3] stride=[], int[3] padding=0, int[3] dilation=1,
//   bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices)
//   -> (Tensor(a!), Tensor(b!))
Error max_pool3d_with_indices_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(6);
  Tensor& indices = args.tensor(7);

  Pool<3> pool;
  ORCH_TRY(prepare_max_pool(args, pool));
  constexpr DtypeSet kDtypes = selected::aten_max_pool3d_with_indices_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    max_pool<typename decltype(type)::type>(pool, self, out, indices);
    return Error::Ok;
  });
}

}  // namespace orch::portable
