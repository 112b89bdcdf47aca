#include "orch_selected/op_avg_pool3d.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/pool.h"
#include "util/pool_lanes.h"
#include "util/scalar.h"
#include "util/volumes.h"

namespace orch::portable {
namespace {

template <typename T>
void avg_pool(const Pool<3>& pool, bool count_include_pad, int64_t divisor,
              const Tensor& self, Tensor& out) {
  using C = Compute<T>;
  const Volumes x(self);
  const Volumes y(out);
  const FlushFlags flags;
  each_window(
      y,
      [&pool](int axis, int32_t o) {
        return AverageWindow(pool.axes[axis], o);
      },
      [&](int32_t n, int32_t d, int32_t h, int32_t w,
          const AverageWindow& depth, const AverageWindow& rows,
          const AverageWindow& columns) {
        int64_t count = int64_t{depth.size()} * rows.size() * columns.size();
        // A window without any input gives 0, not 0 / 0.
        const bool empty = count == 0;
        if (count_include_pad) {
          count = int64_t{depth.padded_size} * rows.padded_size *
                  columns.padded_size;
        }
        if (divisor != 0) count = divisor;
        const C denominator = from_int<C>(empty ? 1 : count);
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
                  denominator));
            },
            [&](int32_t c) {
              return average_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], 0}, first, window,
                  denominator, target);
            });
      });
}

}  // namespace

// aten::avg_pool3d.out(Tensor self, int[3] kernel_size, int[3] stride=[],
//   int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True,
//   int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)
Error avg_pool3d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(7);

  int64_t divisor;
  Pool<3> pool;
  ORCH_TRY(prepare_avg_pool(args, pool, divisor));
  constexpr DtypeSet kDtypes = selected::aten_avg_pool3d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    avg_pool<typename decltype(type)::type>(pool, args.boolean(5), divisor,
                                            self, out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
