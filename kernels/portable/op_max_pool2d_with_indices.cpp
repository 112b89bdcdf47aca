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
  const int32_t item_step = step_w * x.stride[3];
  for (int32_t n = 0; n < y.size[0]; ++n) {
    for (int32_t c = 0; c < y.size[1]; ++c) {
      const T* plane = self.data<T>() + n * x.stride[0] + c * x.stride[1];
      for (int32_t h = 0; h < y.size[2]; ++h) {
        const DilatedWindow rows(pool.axes[0], h);
        for (int32_t w = 0; w < y.size[3]; ++w) {
          const DilatedWindow columns(pool.axes[1], w);
          C largest = lowest<C>();
          int64_t at = int64_t{rows.first} * x.size[3] + columns.first;
          if (columns.first < columns.last) {
            for (int32_t i = rows.first; i < rows.last; i += step_h) {
              const T* item =
                  plane + i * x.stride[2] + columns.first * x.stride[3];
              int32_t j = columns.first;
              do {
                const C value = static_cast<C>(*item);
                // NaN stays, unless another NaN follows.
                if (!(value <= largest) && (value > largest || is_nan(value))) {
                  largest = value;
                  at = i * x.size[3] + j;
                }
                item += item_step;
                j += step_w;
              } while (j < columns.last);
            }
          }
          out.mutable_data<T>()[n * y.stride[0] + c * y.stride[1] +
                                h * y.stride[2] + w * y.stride[3]] =
              static_cast<T>(largest);
          indices.mutable_data<int64_t>()[n * z.stride[0] + c * z.stride[1] +
                                          h * z.stride[2] + w * z.stride[3]] =
              at;
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
  const IntList dilation = args.int_list(4);
  Tensor& out = args.tensor(6);
  Tensor& indices = args.tensor(7);

  ORCH_CHECK(self.dtype == out.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  Pool<2> pool;
  ORCH_TRY(prepare_pool(self, args.int_list(1), args.int_list(2),
                        args.int_list(3), &dilation, args.boolean(5), pool,
                        out));
  ORCH_TRY(resize_output(indices, out.sizes(), self));
  constexpr DtypeSet kDtypes = selected::aten_max_pool2d_with_indices_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    max_pool<typename decltype(type)::type>(pool, self, out, indices);
    return Error::Ok;
  });
}

}  // namespace orch::portable
