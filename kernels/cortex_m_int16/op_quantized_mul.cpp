#include "cortex_m/elementwise.h"
#include "image.h"
#include "orch/kernel.h"
#include "scale.h"

namespace orch::cortex_m_int16 {

// cortex_m::quantized_mul.out(Tensor self, int self_zero_point, Tensor other,
//   int other_zero_point, int output_zero_point, int output_multiplier,
//   int output_shift, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_mul_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(2);
  Tensor& out = args.tensor(7);

  ORCH_CHECK(self.dtype == ScalarType::Short &&
                 other.dtype == ScalarType::Short &&
                 out.dtype == ScalarType::Short,
             Error::InvalidArgument);
  Scale scale;
  ORCH_TRY(read_zero(args, 1));
  ORCH_TRY(read_zero(args, 3));
  ORCH_TRY(read_zero(args, 4));
  ORCH_TRY(cortex_m::read_scale(args, 5, scale));
  ORCH_TRY(resize_broadcast(out, self, other));
  using Row = cortex_m::PairRow<int16_t>;
  cortex_m::for_each_pair_row<int16_t>(self, other, out, [&](const Row& row) {
    cortex_m::map_row(row, [&](int32_t x, int32_t y) {
      return cortex_m::clamp(scaled(x * y, scale), kItems);
    });
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
