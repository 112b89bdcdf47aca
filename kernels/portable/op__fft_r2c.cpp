#include "orch_selected/op__fft_r2c.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/fft.h"

namespace orch::portable {

// aten::_fft_r2c.out(Tensor self, int[] dim, int normalization, bool onesided,
//   *, Tensor(a!) out) -> Tensor(a!)
Error _fft_r2c_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool onesided = args.boolean(3);
  Tensor& out = args.tensor(4);

  FftPlan plan;
  ORCH_TRY(read_fft(args.int_list(1), args.integer(2), self.sizes(), plan));
  const int last = plan.along[plan.transformed - 1];
  const int32_t size = plan.size[last];
  int32_t sizes[kMaxDim];
  for (int d = 0; d < self.dim; ++d) sizes[d] = self.size(d);
  if (onesided) sizes[last] = size / 2 + 1;
  constexpr DtypeSet kDtypes = selected::aten__fft_r2c_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    ORCH_CHECK(out.dtype == DtypeOf<Complex<T>>::value, Error::InvalidArgument);
    ORCH_TRY(resize_output(out, {sizes, self.dim}, self));
    if (out.numel() == 0) return Error::Ok;
    const Strides from(self);
    const Strides complex(out);
    int32_t strides[kMaxDim];
    for (int d = 0; d < self.dim; ++d) strides[d] = 2 * complex[d];
    T* const items = static_cast<T*>(out.memory);
    const T* const signal = self.data<T>();
    const FftSlots slots{size, strides[last], size / 2};
    fft_load(plan, items, strides, slots, [&](const int32_t* index) {
      int32_t offset = 0;
      for (int d = 0; d < self.dim; ++d) offset += index[d] * from[d];
      return signal[offset];
    });
    fft_stages(items, slots, FftLines(sizes, strides, self.dim, last),
               plan.length[plan.transformed - 1]);
    FftLines lines(sizes, strides, self.dim, last);
    int32_t offset;
    while (lines.next(&offset, 1) != 0) {
      T* const line = items + offset;
      line[1] = 0;
      if (size % 2 == 0) line[size / 2 * strides[last] + 1] = 0;
      if (onesided) continue;
      for (int32_t k = 1; 2 * k < size; ++k) {
        line[(size - k) * strides[last]] = line[k * strides[last]];
        line[(size - k) * strides[last] + 1] = -line[k * strides[last] + 1];
      }
    }
    for (int i = 0; i + 1 < plan.transformed; ++i) {
      fft_complex(plan, i, items, sizes, strides, true);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
