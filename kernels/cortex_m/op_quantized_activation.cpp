#include "isa.h"
#include "orch/kernel.h"
#include "prepared.h"
#include "util/check.h"
#include "util/strided_loop.h"

namespace orch::cortex_m {
namespace {

#if ORCH_ISA == ORCH_ISA_MVE
/// Items side by side by a table. Its place for an item is the item with
/// another sign bit, as a number without a sign.
void look_up(const int8_t* table, const int8_t* x, int8_t* y, int32_t count) {
  asm volatile(
      "vmov.i8 q1, #0x80\n"
      "wlstp.8 lr, %[count], 2f\n"
      "1:\n"
      "vldrb.8 q0, [%[x]], #16\n"
      "veor q0, q0, q1\n"
      "vldrb.u8 q2, [%[table], q0]\n"
      "vstrb.8 q2, [%[y]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [x] "+r"(x), [y] "+r"(y)
      : [table] "r"(table), [count] "r"(count)
      : "lr", "q0", "q1", "q2", "cc", "memory");
}
#endif

/// Items by a table.
ORCH_ALWAYS_INLINE void look_up(const int8_t* table, const int8_t* x,
                                int32_t x_step, int8_t* y, int32_t y_step,
                                int32_t count) {
#if ORCH_ISA == ORCH_ISA_MVE
  if (x_step == 1 && y_step == 1) {
    look_up(table, x, y, count);
    return;
  }
#endif
  const int8_t* const zero = table + 128;
  for (int32_t left = count; left > 0; --left) {
    *y = zero[*x];
    x += x_step;
    y += y_step;
  }
}

}  // namespace

// cortex_m::quantized_activation.out(Tensor input, Tensor lut, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// The table has the result for each item, that for -128 first.
Error quantized_activation_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& lut = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(input.dtype == ScalarType::Char && lut.dtype == ScalarType::Char &&
                 out.dtype == ScalarType::Char && lut.numel() == 256,
             Error::InvalidArgument);
  ORCH_CHECK(lut.contiguous(), Error::NotSupported);
  ORCH_TRY(resize_output(out, input.sizes(), lut));
  StridedLoop loop = loop_over(out, input);
  for (; loop.valid(); loop.next()) {
    look_up(lut.data<int8_t>(), input.data<int8_t>() + loop.offset(1),
            loop.row_stride(1), out.mutable_data<int8_t>() + loop.offset(0),
            loop.row_stride(0), loop.row_size());
  }
  return Error::Ok;
}

void quantized_activation(const PreparedCall& prepared) {
  const auto& call = static_cast<const ActivationCall&>(prepared);
  look_up(static_cast<const int8_t*>(call.table),
          static_cast<const int8_t*>(call.input), 1,
          static_cast<int8_t*>(call.out), 1, call.count);
}

}  // namespace orch::cortex_m
