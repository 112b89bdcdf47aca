#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "requantize_mve.h"
#elif ORCH_ISA == ORCH_ISA_DSP
#include "high_multiply.h"
#endif

namespace orch::cortex_m {
namespace {

/// What sums are computed with: their inputs have 20 more bits than items.
constexpr int32_t kLeftShift = 20;

/// One of the inputs, brought to the scale of the sum.
struct Addend {
  int32_t zero_point;
  Scale scale;

  int32_t of(int32_t item) const {
    const uint32_t difference = static_cast<uint32_t>(item - zero_point);
    return scale.of(static_cast<int32_t>(difference << kLeftShift));
  }
};

/// What a sum is computed from.
struct Addition {
  Addend a;
  Addend b;
  Addend sum;
  Range range;
};

#if ORCH_ISA == ORCH_ISA_MVE
/// Computes what of a row is whole vectors, and leaves the rest.
ORCH_HOT void add_vectors(const Addition& add, PairRow<int8_t>& row) {
  if (row.a_step != 1 || row.b_step != 1 || row.to_step != 1) return;
  const VectorScale a(add.a.scale.multiplier, add.a.scale.shift, kLeftShift);
  const VectorScale b(add.b.scale.multiplier, add.b.scale.shift, kLeftShift);
  const VectorScale sum(add.sum.scale.multiplier, add.sum.scale.shift, 0);
  const int32x4_t low = vdupq_n_s32(add.range.low);
  const int32x4_t high = vdupq_n_s32(add.range.high);
  for (; row.count >= 4; row.count -= 4) {
    const int32x4_t x = vaddq_n_s32(vldrbq_s32(row.a), -add.a.zero_point);
    const int32x4_t y = vaddq_n_s32(vldrbq_s32(row.b), -add.b.zero_point);
    int32x4_t total = sum.of(vaddq_s32(a.of(x), b.of(y)));
    total = vaddq_n_s32(total, add.sum.zero_point);
    vstrbq_s32(row.to, vminq_s32(vmaxq_s32(total, low), high));
    row.a += 4;
    row.b += 4;
    row.to += 4;
  }
}
#endif

#if ORCH_ISA == ORCH_ISA_DSP
/// Whether nothing is made larger, and differences from the zero point have
/// 9 bits and a sign.
bool suits_dsp(const Addend& addend) {
  constexpr int32_t kMost = 383;
  return addend.zero_point >= -kMost && addend.zero_point <= kMost &&
         addend.scale.shift <= 0;
}

/// Computes items side by side. Addends and sum are what `suits_dsp` asks for:
/// sums have a bit to spare.
ORCH_HOT void add_dsp(const Addition& addition, const PairRow<int8_t>& row) {
  const Addition add = addition;  // what is written cannot change it
  const uint32_t a_shift = static_cast<uint32_t>(-add.a.scale.shift);
  const uint32_t b_shift = static_cast<uint32_t>(-add.b.scale.shift);
  const uint32_t shift = static_cast<uint32_t>(-add.sum.scale.shift);
  const bool full = is_full(add.range);
  const int8_t* a = row.a;
  const int8_t* b = row.b;
  for (int8_t *to = row.to, *const end = to + row.count; to != end; ++to) {
    const int32_t x = (*a++ - add.a.zero_point) * (1 << kLeftShift);
    const int32_t y = (*b++ - add.b.zero_point) * (1 << kLeftShift);
    int32_t sum = divide_and_add(high_multiply_small(x, add.a.scale.multiplier),
                                 a_shift, 0);
    sum = divide_and_add(high_multiply_small(y, add.b.scale.multiplier),
                         b_shift, sum);
    sum = divide_and_add(high_multiply_small(sum, add.sum.scale.multiplier),
                         shift, add.sum.zero_point);
    *to = clamp_item(sum, full, add.range);
  }
}
#endif

/// The largest zero point of an addend, which may be no item: differences from
/// it then have 12 bits, and can be shifted by 20.
constexpr int32_t kMostZeroPoint = 1920;

/// Reads zero point, multiplier and shift. Errors: InvalidArgument.
__attribute__((noinline)) Error read_addend(const Args& args, int first,
                                            Addend& addend) {
  ORCH_TRY(read_between(args, first, -kMostZeroPoint, kMostZeroPoint,
                        addend.zero_point));
  return read_scale(args, first + 1, addend.scale);
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

  Addition add;
  ORCH_TRY(read_addend(args, 1, add.a));
  ORCH_TRY(read_addend(args, 5, add.b));
  ORCH_TRY(read_item(args, 8, add.sum.zero_point));
  ORCH_TRY(read_scale(args, 9, add.sum.scale));
  ORCH_TRY(read_range(args, 11, 12, add.range));
  ORCH_TRY(prepare_pair(self, other, out));
#if ORCH_ISA == ORCH_ISA_DSP
  const bool dsp = suits_dsp(add.a) && suits_dsp(add.b) && suits_dsp(add.sum);
#endif
  for_each_pair_row<int8_t>(self, other, out, [&](PairRow<int8_t> row) {
#if ORCH_ISA == ORCH_ISA_MVE
    add_vectors(add, row);
#elif ORCH_ISA == ORCH_ISA_DSP
    if (dsp && row.a_step == 1 && row.b_step == 1 && row.to_step == 1) {
      add_dsp(add, row);
      return;
    }
#endif
    map_row(row, [&](int32_t x, int32_t y) {
      const uint32_t total = static_cast<uint32_t>(add.a.of(x)) +
                             static_cast<uint32_t>(add.b.of(y));
      const int32_t scaled = add.sum.scale.of(static_cast<int32_t>(total));
      return clamp(wrapping_sum(scaled, add.sum.zero_point), add.range);
    });
  });
  return Error::Ok;
}

}  // namespace orch::cortex_m
