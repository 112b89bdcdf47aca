#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"

namespace orch::cortex_m {
namespace {

/// What sums are computed with: their inputs have 20 more bits than items.
constexpr uint32_t kLeftShift = 20;

/// One of the inputs, brought to the scale of the sum.
struct Addend {
  int32_t zero_point;
  Scale scale;

  int32_t of(int32_t item) const {
    const uint32_t difference = static_cast<uint32_t>(item - zero_point);
    return scale.of(static_cast<int32_t>(difference << kLeftShift));
  }
};

/// Reads zero point, multiplier and shift. Errors: InvalidArgument.
__attribute__((noinline)) Error read_addend(const Args& args, int first,
                                            Addend& addend) {
  ORCH_TRY(read_between(args.integer(first), -128, 127, addend.zero_point));
  return read_scale(args.integer(first + 1), args.integer(first + 2),
                    addend.scale);
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

  Addend a;
  Addend b;
  Addend sum;
  Range range;
  ORCH_TRY(read_addend(args, 1, a));
  ORCH_TRY(read_addend(args, 5, b));
  ORCH_TRY(read_addend(args, 8, sum));
  ORCH_TRY(read_range(args.integer(11), args.integer(12), range));
  ORCH_TRY(prepare_pair(self, other, out));
  map_pairs<int8_t>(self, other, out, [&](int32_t x, int32_t y) {
    const uint32_t total =
        static_cast<uint32_t>(a.of(x)) + static_cast<uint32_t>(b.of(y));
    const int32_t scaled = sum.scale.of(static_cast<int32_t>(total));
    return clamp(wrapping_sum(scaled, sum.zero_point), range);
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m
