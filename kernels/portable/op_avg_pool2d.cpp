#include "orch_selected/op_avg_pool2d.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/pool.h"
#include "util/pool_lanes.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

template <typename T>
ORCH_HOT void avg_pool(const Pool<2>& pool, bool count_include_pad,
                       int64_t divisor, const Tensor& self, Tensor& out) {
  using C = Compute<T>;
  const Planes x(self, 0);
  const Planes y(out, 0);
  const FlushFlags flags;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t h = 0; h < y.size[2]; ++h) {
      const AverageWindow rows(pool.axes[0], h);
      for (int32_t w = 0; w < y.size[3]; ++w) {
        const AverageWindow columns(pool.axes[1], w);
        // A window without any input gives 0, not 0 / 0.
        const bool empty = rows.size() == 0 || columns.size() == 0;
        int64_t count = int64_t{rows.size()} * columns.size();
        if (count_include_pad) {
          count = int64_t{rows.padded_size} * columns.padded_size;
        }
        if (divisor != 0) count = divisor;
        const C denominator = from_int<C>(empty ? 1 : count);
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
              const C sum = empty ? C(0) : sum_of<C>(items, x, rows, columns);
              target[c * y.stride[1]] =
                  static_cast<T>(divide(sum, denominator));
            },
            [&](int32_t c) {
              return average_channels(
                  {c, y.size[1], x.stride[1], y.stride[1], 0}, first, window,
                  denominator, target);
            });
      }
    }
  }
}

}  // namespace

// aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[],
//   int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True,
//   int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)
Error avg_pool2d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(7);

  int64_t divisor;
  Pool<2> pool;
  ORCH_TRY(prepare_avg_pool(args, pool, divisor));
  constexpr DtypeSet kDtypes = selected::aten_avg_pool2d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    avg_pool<typename decltype(type)::type>(pool, args.boolean(5), divisor,
                                            self, out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
