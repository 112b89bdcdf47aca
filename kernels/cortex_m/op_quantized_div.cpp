#include "orch_selected/op_quantized_div.h"

#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"
#include "util/dtype.h"

namespace orch::cortex_m {
namespace {

/// The nearest whole number, ties away from zero.
float round_away(float value) {
  // From here on floats are whole; NaN stays as well.
  const float size = value < 0 ? -value : value;
  if (!(size < 0x1p23F)) return value;
  const int32_t whole = static_cast<int32_t>(size);
  const float rest = size - static_cast<float>(whole);
  const float rounded = static_cast<float>(rest >= 0.5F ? whole + 1 : whole);
  return value < 0 ? -rounded : rounded;
}

/// What a division is computed with.
struct Division {
  int32_t a_zero;
  int32_t b_zero;
  float zero_point;
  float scale;
  float low;
  float high;

  /// 0 / 0 and everything else divided by the zero point is 0. Source:
  /// ExecuTorch, backends/cortex_m/ops/op_quantized_div.cpp.
  int32_t of(int32_t a, int32_t b) const {
    // Nothing is converted under a condition: gcc 12 gives such a conversion a
    // name that the assembler for MVE does not take (vcvtne).
    const bool none = b == b_zero;
    const int32_t divisor = none ? 1 : b - b_zero;
    const int32_t dividend = none ? 0 : a - a_zero;
    const float quotient =
        static_cast<float>(dividend) / static_cast<float>(divisor);
    const float value = round_away(quotient * scale) + zero_point;
    // NaN, of a scale that is none or not finite, gives the upper limit.
    if (!(value < high)) return static_cast<int32_t>(high);
    return static_cast<int32_t>(value > low ? value : low);
  }
};

}  // namespace

// cortex_m::quantized_div.out(Tensor self, int self_zero_point, Tensor other,
//   int other_zero_point, int output_zero_point, float output_scale, *,
//   Tensor(a!) out) -> Tensor(a!)
Error quantized_div_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(2);
  Tensor& out = args.tensor(6);

  ORCH_CHECK(self.dtype == out.dtype && other.dtype == out.dtype,
             Error::InvalidArgument);
  Division division;
  int32_t zero_point;
  ORCH_TRY(read_between(args, 1, -32768, 32767, division.a_zero));
  ORCH_TRY(read_between(args, 3, -32768, 32767, division.b_zero));
  ORCH_TRY(read_between(args, 4, -32768, 32767, zero_point));
  division.zero_point = static_cast<float>(zero_point);
  division.scale = static_cast<float>(args.real(5));
  ORCH_TRY(resize_broadcast(out, self, other));
  constexpr DtypeSet kDtypes = selected::cortex_m_quantized_div_out;
  constexpr DtypeSet kTaken = dtype_set(ScalarType::Char, ScalarType::Short);
  return switch_dtype<(kDtypes & kTaken).bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    division.high = sizeof(T) == 1 ? 127 : 32767;
    division.low = -1 - division.high;
    map_pairs<T>(self, other, out,
                 [&](int32_t a, int32_t b) { return division.of(a, b); });
    return Error::Ok;
  });
}

}  // namespace orch::cortex_m
