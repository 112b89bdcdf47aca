#include "orch/kernel.h"
#include "prepared.h"
#include "util/check.h"
#include "util/strided_loop.h"

namespace orch::cortex_m {
namespace {

/// Items by a table, whose item for 0 is at `zero`.
void look_up(const int8_t* zero, const int8_t* x, int32_t x_step, int8_t* y,
             int32_t y_step, int32_t count) {
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
  const int8_t* const zero = lut.data<int8_t>() + 128;
  StridedLoop loop = loop_over(out, input);
  for (; loop.valid(); loop.next()) {
    look_up(zero, input.data<int8_t>() + loop.offset(1), loop.row_stride(1),
            out.mutable_data<int8_t>() + loop.offset(0), loop.row_stride(0),
            loop.row_size());
  }
  return Error::Ok;
}

void quantized_activation(const PreparedCall& prepared) {
  const auto& call = static_cast<const ActivationCall&>(prepared);
  look_up(static_cast<const int8_t*>(call.table) + 128,
          static_cast<const int8_t*>(call.input), 1,
          static_cast<int8_t*>(call.out), 1, call.count);
}

}  // namespace orch::cortex_m
