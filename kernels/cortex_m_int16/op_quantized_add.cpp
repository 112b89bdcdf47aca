#include "cortex_m/elementwise.h"
#include "image.h"
#include "orch/kernel.h"
#include "scale.h"

namespace orch::cortex_m_int16 {
namespace {

/// What sums are computed with: their inputs have 15 more bits than items.
constexpr int32_t kLeftShift = 15;

/// An item of an addend, in the scale of the sum.
int32_t scaled_item(const Scale& scale, int32_t item) {
  return scaled(item * (1 << kLeftShift), scale);
}

}  // namespace

// cortex_m::quantized_add.out(Tensor self, int self_zero_point,
//   int self_multiplier, int self_shift, Tensor other, int other_zero_point,
//   int other_multiplier, int other_shift, int output_zero_point,
//   int output_multiplier, int output_shift, int activation_min,
//   int activation_max, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_add_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(4);
  Tensor& out = args.tensor(13);

  ORCH_CHECK(self.dtype == ScalarType::Short &&
                 other.dtype == ScalarType::Short &&
                 out.dtype == ScalarType::Short,
             Error::InvalidArgument);
  Scale a;
  Scale b;
  Scale sum;
  Range range;
  ORCH_TRY(read_zero(args, 1));
  ORCH_TRY(cortex_m::read_scale(args, 2, a));
  ORCH_TRY(read_zero(args, 5));
  ORCH_TRY(cortex_m::read_scale(args, 6, b));
  ORCH_TRY(read_zero(args, 8));
  ORCH_TRY(cortex_m::read_scale(args, 9, sum));
  ORCH_TRY(read_limits(args, 11, 12, range));
  ORCH_TRY(resize_broadcast(out, self, other));
  using Row = cortex_m::PairRow<int16_t>;
  cortex_m::for_each_pair_row<int16_t>(self, other, out, [&](const Row& row) {
    cortex_m::map_row(row, [&](int32_t x, int32_t y) {
      const int32_t total =
          cortex_m::wrapping_sum(scaled_item(a, x), scaled_item(b, y));
      return cortex_m::clamp(scaled(total, sum), range);
    });
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
