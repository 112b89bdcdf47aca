#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

// cortex_m::quantized_mul.out(Tensor self, int self_zero_point, Tensor other,
//   int other_zero_point, int output_zero_point, int output_multiplier,
//   int output_shift, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_mul_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(2);
  Tensor& out = args.tensor(7);

  int32_t a;
  int32_t b;
  int32_t zero_point;
  Scale scale;
  // Quantizers give a factor such as hardsigmoid(x), of which they only see a
  // part of the range, zero points that are no items.
  ORCH_TRY(read_between(args, 1, -32768, 32767, a));
  ORCH_TRY(read_between(args, 3, -32768, 32767, b));
  ORCH_TRY(read_item(args, 4, zero_point));
  ORCH_TRY(read_scale(args, 5, scale));
  ORCH_TRY(prepare_pair(self, other, out));
  map_pairs<int8_t>(self, other, out, [&](int32_t x, int32_t y) {
    const int32_t scaled = scale.of((x - a) * (y - b));
    return clamp(wrapping_sum(scaled, zero_point), {-128, 127});
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m
