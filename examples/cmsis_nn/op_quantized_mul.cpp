#include "rows.h"

namespace cmsis_adapter {

// cortex_m::quantized_mul.out(Tensor self, int self_zero_point, Tensor other,
//   int other_zero_point, int output_zero_point, int output_multiplier,
//   int output_shift, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_mul_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(2);
  Tensor& out = args.tensor(7);

  int32_t of_self;
  int32_t of_other;
  int32_t of_out;
  Scale scale;
  ORCH_TRY(read_item(args, 1, of_self));
  ORCH_TRY(read_item(args, 3, of_other));
  ORCH_TRY(read_item(args, 4, of_out));
  ORCH_TRY(read_scale(args, 5, scale));
  ORCH_TRY(prepare_pair(self, other, out));
  return for_each_run(
      self, other, out,
      [&](const int8_t* a, const int8_t* b, int8_t* to, int32_t count) {
        return arm_elementwise_mul_s8(a, b, -of_self, -of_other, to, of_out,
                                      scale.multiplier, scale.shift, INT8_MIN,
                                      INT8_MAX, count);
      });
}

}  // namespace cmsis_adapter
