#include "orch_selected/op_frexp.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/dtype.h"

namespace orch::portable {
namespace {

/// A mantissa from 0.5 to 1, and the power of two by which it is `x`; 0 for
/// zeros, infinities and NaN, which stay.
template <typename F>
F split(F x, int32_t& exponent) {
  using U = UnsignedOf<sizeof(F)>;
  constexpr int kFraction = sizeof(F) == 8 ? 52 : 23;
  constexpr U kExponents = sizeof(F) == 8 ? 0x7FF : 0xFF;
  constexpr U kHalf = (kExponents >> 1) - 1;
  U bits;
  memcpy(&bits, &x, sizeof bits);
  U own = (bits >> kFraction) & kExponents;
  exponent = 0;
  const bool zero = (bits << 1) == 0;
  if (zero || own == kExponents) return x;
  if (own == 0) {
    // Subnormal numbers become larger ones.
    x *= static_cast<F>(U{1} << kFraction);
    exponent = -kFraction;
    memcpy(&bits, &x, sizeof bits);
    own = (bits >> kFraction) & kExponents;
  }
  exponent += static_cast<int32_t>(own) - static_cast<int32_t>(kHalf);
  bits ^= (own ^ kHalf) << kFraction;
  memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace

// aten::frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa,
//   Tensor(b!) exponent) -> (Tensor(a!) mantissa, Tensor(b!) exponent)
Error frexp_Tensor_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& mantissa = args.tensor(1);
  Tensor& exponent = args.tensor(2);

  ORCH_CHECK(mantissa.dtype == self.dtype && exponent.dtype == ScalarType::Int,
             Error::InvalidArgument);
  ORCH_TRY(set_sizes(mantissa, self.sizes()));
  ORCH_TRY(resize_output(exponent, self.sizes(), self, mantissa));
  constexpr DtypeSet kDtypes = selected::aten_frexp_Tensor_out;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    StridedLoop loop = loop_over(mantissa, self, exponent);
    for (; loop.valid(); loop.next()) {
      for (int32_t i = 0; i < loop.row_size(); ++i) {
        const T item = self.data<T>()[loop.offset(1) + i * loop.row_stride(1)];
        int32_t power;
        const T rest = static_cast<T>(split(number_of(item), power));
        mantissa.mutable_data<T>()[loop.offset(0) + i * loop.row_stride(0)] =
            rest;
        exponent
            .mutable_data<int32_t>()[loop.offset(2) + i * loop.row_stride(2)] =
            power;
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
