#include "rows.h"

namespace cmsis_adapter {
namespace {

/// What sums are computed with: their inputs have 20 more bits than items.
constexpr int32_t kLeftShift = 20;

/// Reads zero point, multiplier and shift. Errors: InvalidArgument.
Error read_addend(const Args& args, int first, int32_t& zero_point,
                  Scale& scale) {
  ORCH_TRY(read_item(args, first, zero_point));
  return read_scale(args, first + 1, scale);
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

  int32_t zero_points[3];
  Scale scales[3];
  Range range;
  ORCH_TRY(read_addend(args, 1, zero_points[0], scales[0]));
  ORCH_TRY(read_addend(args, 5, zero_points[1], scales[1]));
  ORCH_TRY(read_addend(args, 8, zero_points[2], scales[2]));
  ORCH_TRY(read_range(args, 11, 12, range));
  ORCH_TRY(prepare_pair(self, other, out));
  return for_each_run(
      self, other, out,
      [&](const int8_t* a, const int8_t* b, int8_t* to, int32_t count) {
        return arm_elementwise_add_s8(
            a, b, -zero_points[0], scales[0].multiplier, scales[0].shift,
            -zero_points[1], scales[1].multiplier, scales[1].shift, kLeftShift,
            to, zero_points[2], scales[2].multiplier, scales[2].shift,
            range.low, range.high, count);
      });
}

}  // namespace cmsis_adapter
