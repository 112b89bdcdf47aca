#include "orch_selected/op_mean.h"

#include "orch/kernel.h"
#include "util/dtype.h"

namespace orch::narrow {

/// Bytes are summed in Int, which no argument has: a build has to select it.
// narrow::mean.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error mean_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  constexpr DtypeSet kDtypes = selected::narrow_mean_out;
  ORCH_CHECK(self.dtype == out.dtype && self.numel() > 0,
             Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  const ScalarType inner =
      self.dtype == ScalarType::Char ? ScalarType::Int : self.dtype;
  return switch_dtype<kDtypes.bits>(inner, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsSame<T, int32_t> || kIsSame<T, float>) {
      T sum = 0;
      for (int32_t i = 0; i < self.numel(); ++i) {
        sum += kIsSame<T, float> ? static_cast<T>(self.data<float>()[i])
                                 : static_cast<T>(self.data<int8_t>()[i]);
      }
      const T mean = sum / static_cast<T>(self.numel());
      if (kIsSame<T, float>) {
        *out.mutable_data<float>() = static_cast<float>(mean);
      } else {
        *out.mutable_data<int8_t>() = static_cast<int8_t>(mean);
      }
      return Error::Ok;
    } else {
      return Error::DtypeNotSelected;
    }
  });
}

}  // namespace orch::narrow
