#include "orch_selected/op_max_pool2d_with_indices.h"

#include "orch/kernel.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/pool.h"

namespace orch::portable {
namespace {

template <typename T>
ORCH_HOT void max_pool(const Pool<2>& pool, const Tensor& self, Tensor& out,
                       Tensor& indices) {
  using C = typename Choose<kIsHalf<T>, float, T>::type;
  const Planes x(self, 0);
  const Planes y(out, 0);
  const Planes z(indices, 0);
  const int32_t step_h = pool.axes[0].dilation;
  const int32_t step_w = pool.axes[1].dilation;
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t c = 0; c < y.size[1]; ++c) {
      const T* const plane = self.data<T>() + n * x.stride[0] + c * x.stride[1];
      for (int32_t h = 0; h < y.size[2]; ++h) {
        const DilatedWindow rows(pool.axes[0], h);
        T* target = out.mutable_data<T>() + n * y.stride[0] + c * y.stride[1] +
                    h * y.stride[2];
        int64_t* index = indices.mutable_data<int64_t>() + n * z.stride[0] +
                         c * z.stride[1] + h * z.stride[2];
        for (int32_t w = 0; w < y.size[3]; ++w) {
          const DilatedWindow columns(pool.axes[1], w);
          int32_t at;
          *target = static_cast<T>(
              largest_of<C>(plane, x, rows, columns, step_h, step_w, at));
          *index = at;
          target += y.stride[3];
          index += z.stride[3];
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
