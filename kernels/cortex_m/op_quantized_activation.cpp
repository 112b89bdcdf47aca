#include "orch/kernel.h"
#include "util/check.h"
#include "util/strided_loop.h"

namespace orch::cortex_m {

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
  const int8_t* const zero = lut.data<int8_t>() + 128;
  StridedLoop loop = loop_over(out, input);
  for (; loop.valid(); loop.next()) {
    const int8_t* x = input.data<int8_t>() + loop.offset(1);
    int8_t* y = out.mutable_data<int8_t>() + loop.offset(0);
    const int32_t x_step = loop.row_stride(1);
    const int32_t y_step = loop.row_stride(0);
    for (int32_t left = loop.row_size(); left > 0; --left) {
      *y = zero[*x];
      x += x_step;
      y += y_step;
    }
  }
  return Error::Ok;
}

}  // namespace orch::cortex_m
