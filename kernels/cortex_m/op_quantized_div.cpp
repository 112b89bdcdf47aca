#include "orch_selected/op_quantized_div.h"

#include <stddef.h>

#include "assembly.h"
#include "elementwise.h"
#include "image.h"
#include "isa.h"
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

/// 0 / 0 and everything else divided by the zero point is 0. Source:
/// ExecuTorch, backends/cortex_m/ops/op_quantized_div.cpp.
int32_t divide(const Quotient& by, int32_t a, int32_t b) {
  // Nothing is converted under a condition: gcc 12 gives such a conversion a
  // name that the assembler for MVE does not take (vcvtne).
  const bool none = b == by.b;
  const int32_t divisor = none ? 1 : b - by.b;
  const int32_t dividend = none ? 0 : a - by.a;
  const float quotient =
      static_cast<float>(dividend) / static_cast<float>(divisor);
  const float value = round_away(quotient * by.scale) + by.zero_point;
  // NaN, of a scale that is none or not finite, gives the upper limit.
  if (!(value < by.high)) return static_cast<int32_t>(by.high);
  return static_cast<int32_t>(value > by.low ? value : by.low);
}

#if ORCH_FLOAT_VECTORS
static_assert(offsetof(Quotient, b) == 4 &&
                  offsetof(Quotient, zero_point) == 8 &&
                  offsetof(Quotient, scale) == 12 &&
                  offsetof(Quotient, low) == 16 &&
                  offsetof(Quotient, high) == 20,
              "the assembly knows where things are");

// Divides items side by side, of 8 or 16 bits, four at a time; quotients are
// those of single floats, as there is no instruction for vectors of them. What
// vectors take for 0 is far below half a step.
extern "C" void orch_divide_8(const int8_t* a, const int8_t* b, int8_t* to,
                              const Quotient* by, int32_t count);
extern "C" void orch_divide_16(const int16_t* a, const int16_t* b, int16_t* to,
                               const Quotient* by, int32_t count);
asm(R"(
  .macro orch_divide type, size
  ldm r3, {r4-r9}
  ldr lr, [sp, #36]
  vdup.32 q2, r8
  vdup.32 q3, r9
  wlstp.32 lr, lr, 2f
1:
  vldr\type\().s32 q0, [r0], #\size
  vldr\type\().s32 q1, [r1], #\size
  vsub.i32 q0, q0, r4
  vsub.i32 q1, q1, r5
  vptt.i32 eq, q1, zr
  vmovt.i32 q0, #0
  vmovt.i32 q1, #1
  vcvt.f32.s32 q0, q0
  vcvt.f32.s32 q1, q1
  vdiv.f32 s0, s0, s4
  vdiv.f32 s1, s1, s5
  vdiv.f32 s2, s2, s6
  vdiv.f32 s3, s3, s7
  vmul.f32 q0, q0, r7
  vrinta.f32 q0, q0
  vadd.f32 q0, q0, r6
  vminnm.f32 q0, q0, q3
  vmaxnm.f32 q0, q0, q2
  vcvt.s32.f32 q0, q0
  vstr\type\().32 q0, [r2], #\size
  letp lr, 1b
2:
  .endm
)" ORCH_FUNCTION("orch_divide_8") ORCH_SAVE
    "  orch_divide b, 4\n" ORCH_RETURN ORCH_END("orch_divide_8")
        ORCH_FUNCTION("orch_divide_16") ORCH_SAVE
    "  orch_divide h, 8\n" ORCH_RETURN ORCH_END(
        "orch_divide_16") "  .purgem orch_divide\n");
#endif

/// Divides the items of a row.
template <typename T>
ORCH_ALWAYS_INLINE void divide_row(const Quotient& by, const PairRow<T>& row) {
#if ORCH_FLOAT_VECTORS
  if (row.a_step == 1 && row.b_step == 1 && row.to_step == 1) {
    if constexpr (sizeof(T) == 1) {
      orch_divide_8(row.a, row.b, row.to, &by, row.count);
    } else {
      orch_divide_16(row.a, row.b, row.to, &by, row.count);
    }
    return;
  }
#endif
  map_row(row, [&](int32_t a, int32_t b) { return divide(by, a, b); });
}

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
  Quotient quotient;
  int32_t zero_point;
  ORCH_TRY(read_between(args, 1, -32768, 32767, quotient.a));
  ORCH_TRY(read_between(args, 3, -32768, 32767, quotient.b));
  ORCH_TRY(read_between(args, 4, -32768, 32767, zero_point));
  quotient.zero_point = static_cast<float>(zero_point);
  quotient.scale = static_cast<float>(args.real(5));
  ORCH_TRY(resize_broadcast(out, self, other));
  constexpr DtypeSet kDtypes = selected::cortex_m_quantized_div_out;
  constexpr DtypeSet kTaken = dtype_set(ScalarType::Char, ScalarType::Short);
  return switch_dtype<(kDtypes & kTaken).bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    quotient.high = sizeof(T) == 1 ? 127 : 32767;
    quotient.low = -1 - quotient.high;
    for_each_pair_row<T>(self, other, out, [&](const PairRow<T>& row) {
      divide_row(quotient, row);
    });
    return Error::Ok;
  });
}

// Prepared: int8.
void quantized_div(const PreparedCall& prepared) {
  const auto& call = static_cast<const DivideCall&>(prepared);
  for_each_prepared_row<int8_t>(call, [&](const PairRow<int8_t>& row) {
    divide_row(call.quotient, row);
  });
}

}  // namespace orch::cortex_m
