#include "orch_selected/op__fft_c2c.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/fft.h"

namespace orch::portable {

// aten::_fft_c2c.out(Tensor self, SymInt[] dim, int normalization,
//   bool forward, *, Tensor(a!) out) -> Tensor(a!)
Error _fft_c2c_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const bool forward = args.boolean(3);
  Tensor& out = args.tensor(4);

  FftPlan plan;
  ORCH_TRY(read_fft(args.int_list(1), args.integer(2), self.sizes(), plan));
  ORCH_CHECK(self.dtype == out.dtype, Error::InvalidArgument);
  ORCH_TRY(resize_output(out, self.sizes(), self));
  constexpr DtypeSet kDtypes = selected::aten__fft_c2c_out;
  return switch_dtype<(kDtypes & kComplex).bits>(out.dtype, [&](auto type) {
    using T = decltype(decltype(type)::type::real);
    if (out.numel() == 0) return Error::Ok;
    const Strides from(self);
    const Strides complex(out);
    int32_t strides[kMaxDim];
    for (int d = 0; d < out.dim; ++d) strides[d] = 2 * complex[d];
    T* const items = static_cast<T*>(out.memory);
    const int last = plan.along[plan.transformed - 1];
    const FftSlots slots{plan.size[last], strides[last], plan.size[last]};
    for (int part = 0; part < 2; ++part) {
      const T* const signal = static_cast<const T*>(self.memory) + part;
      fft_load(plan, items + part, strides, slots, [&](const int32_t* index) {
        int32_t offset = 0;
        for (int d = 0; d < self.dim; ++d) offset += index[d] * from[d];
        return signal[2 * offset];
      });
    }
    for (int i = 0; i < plan.transformed; ++i) {
      fft_complex(plan, i, items, plan.size, strides, forward);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
