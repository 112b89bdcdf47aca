#include "orch_selected/op_adaptive_max_pool2d.h"

#include "orch/kernel.h"
#include "util/adaptive.h"
#include "util/dtype.h"

namespace orch::portable {
namespace {

template <typename T>
void largest(const Tensor& self, Tensor& out, Tensor& indices) {
  using C = Compute<T>;
  const Planes x(self, 0);
  const Planes y(out, 0);
  const Planes z(indices, 0);
  each_adaptive_window(
      x, y,
      [&](int32_t n, int32_t h, int32_t w, const AdaptiveWindow& rows,
          const AdaptiveWindow& columns) {
        for (int32_t c = 0; c < y.size[1]; ++c) {
          const T* plane = self.data<T>() + n * x.stride[0] + c * x.stride[1];
          C best = lowest<C>();
          int32_t at = rows.first * x.size[3] + columns.first;
          for (int32_t i = rows.first; i < rows.last; ++i) {
            for (int32_t j = columns.first; j < columns.last; ++j) {
              const C value =
                  static_cast<C>(plane[i * x.stride[2] + j * x.stride[3]]);
              // NaN stays, unless another NaN follows.
              if (value > best || is_nan(value)) {
                best = value;
                at = i * x.size[3] + j;
              }
            }
          }
          out.mutable_data<T>()[n * y.stride[0] + c * y.stride[1] +
                                h * y.stride[2] + w * y.stride[3]] =
              static_cast<T>(best);
          indices.mutable_data<int64_t>()[n * z.stride[0] + c * z.stride[1] +
                                          h * z.stride[2] + w * z.stride[3]] =
              at;
        }
      });
}

}  // namespace

// aten::adaptive_max_pool2d.out(Tensor self, int[2] output_size, *,
//   Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
Error adaptive_max_pool2d_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(2);
  Tensor& indices = args.tensor(3);

  ORCH_CHECK(self.dtype == out.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_TRY(resize_adaptive<2>(self, args.int_list(1), out));
  ORCH_TRY(resize_output(indices, out.sizes(), self));
  constexpr DtypeSet kDtypes = selected::aten_adaptive_max_pool2d_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    largest<typename decltype(type)::type>(self, out, indices);
    return Error::Ok;
  });
}

}  // namespace orch::portable
