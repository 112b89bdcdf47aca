#include "orch_selected/op_max_pool3d_with_indices.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/pool.h"
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
        for (int32_t c = 0; c < y.size[1]; ++c) {
          const T* volume = self.data<T>() + n * x.stride[0] + c * x.stride[1];
          out.mutable_data<T>()[y.at(n, d, h, w) + c * y.stride[1]] =
              static_cast<T>(largest_of<C>(
                  volume, x, depth, rows, columns, step,
                  indices.mutable_data<int64_t>()[z.at(n, d, h, w) +
                                                  c * z.stride[1]]));
        }
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
