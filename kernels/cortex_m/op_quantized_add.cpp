#include <stddef.h>

#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"
#if ORCH_ISA == ORCH_ISA_DSP
#include "high_multiply.h"
#endif

namespace orch::cortex_m {
namespace {

/// What sums are computed with: their inputs have 20 more bits than items.
constexpr int32_t kLeftShift = 20;

// Where rows that lie otherwise are rare, the code for them is small.
#if ORCH_ISA == ORCH_ISA_SCALAR
#define ORCH_RARE inline
#else
#define ORCH_RARE __attribute__((noinline))
#endif

/// `value` times a factor.
ORCH_RARE int32_t scaled(const Scale& scale, int32_t value) {
  return scale.of(value);
}

/// An item of an addend, less its zero point.
int32_t scaled_item(const Addend& addend, int32_t item) {
  const uint32_t difference = static_cast<uint32_t>(item - addend.zero_point);
  return scaled(addend.scale, static_cast<int32_t>(difference << kLeftShift));
}

/// Computes a row of items for any addition.
ORCH_ALWAYS_INLINE void add_row(const Addition& add,
                                const PairRow<int8_t>& row) {
  map_row(row, [&](int32_t x, int32_t y) {
    const uint32_t total = static_cast<uint32_t>(scaled_item(add.a, x)) +
                           static_cast<uint32_t>(scaled_item(add.b, y));
    const int32_t sum = scaled(add.sum.scale, static_cast<int32_t>(total));
    return clamp(wrapping_sum(sum, add.sum.zero_point), add.range);
  });
}

#if ORCH_ISA != ORCH_ISA_SCALAR
/// Whether differences from a zero point have 9 bits and a sign.
bool is_near(int32_t zero_point) {
  constexpr int32_t kMost = 383;
  return static_cast<uint32_t>(zero_point + kMost) <= 2 * kMost;
}

/// Whether `add_plain` computes this, as it does whatever exporters write: the
/// factor of the larger scale is a half, without a shift, and nothing is made
/// larger or changes its sign.
bool is_plain(const Addition& add) {
  const Scale& a = add.a.scale;
  const Scale& b = add.b.scale;
  const Scale& sum = add.sum.scale;
  return is_near(add.a.zero_point) && is_near(add.b.zero_point) &&
         (a.multiplier | b.multiplier | sum.multiplier) >= 0 && a.shift == 0 &&
         b.shift <= 0 && sum.shift < 0;
}
#endif

#if ORCH_ISA == ORCH_ISA_MVE
static_assert(sizeof(Addend) == 12 && offsetof(Addition, range) == 36,
              "the assembly knows where things are");

/// Computes a row of items side by side for a plain addition. Sums have a bit
/// to spare. Ties of negative numbers go down, for which they are made smaller
/// by one before they are shifted, if they are: with the number 0 the product
/// is 0, and one less does not count.
ORCH_HOT void add_plain(const Addition& add, const PairRow<int8_t>& row) {
  register const int8_t* a asm("r0") = row.a;
  register const int8_t* b asm("r1") = row.b;
  register int8_t* to asm("r2") = row.to;
  register const Addition* from asm("r3") = &add;
  register int32_t count asm("r12") = row.count;
  asm volatile(
      "ldrd r4, r5, [r3, #36]\n"
      "vdup.32 q3, r4\n"
      "vdup.32 q4, r5\n"
      "mov r4, #0x100000\n"
      "vdup.32 q6, r4\n"
      "ldm r3, {r3, r4, r5, r6, r8, r9, r10, r11, lr}\n"
      "vdup.32 q5, r10\n"
      "rsbs r3, r3, #0\n"
      "lsls r3, r3, #20\n"
      "rsbs r6, r6, #0\n"
      "lsls r6, r6, #20\n"
      "lsr r5, r9, #31\n"  // whether b is shifted
      "mov r10, lr\n"
      "wlstp.32 lr, r12, 2f\n"
      "1:\n"
      "vldrb.s32 q0, [r1], #4\n"
      "vmlas.s32 q0, q6, r6\n"
      "vldrb.s32 q2, [r0], #4\n"
      "vqdmulh.s32 q1, q0, r5\n"  // -1 for negative numbers
      "vmlas.s32 q2, q6, r3\n"
      "vqrdmlah.s32 q1, q0, r8\n"
      "vrshl.s32 q1, r9\n"
      "vqrdmlah.s32 q1, q2, r4\n"
      "vshr.s32 q0, q1, #31\n"
      "vqrdmlah.s32 q0, q1, r11\n"
      "vrshl.s32 q0, r10\n"
      "vadd.i32 q0, q0, q5\n"
      "vmax.s32 q0, q0, q3\n"
      "vmin.s32 q0, q0, q4\n"
      "vstrb.32 q0, [r2], #4\n"
      "letp lr, 1b\n"
      "2:\n"
      : "+r"(a), "+r"(b), "+r"(to), "+r"(from)
      : "r"(count)
      : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "lr", "q0", "q1", "q2",
        "q3", "q4", "q5", "q6", "cc", "memory");
}
#elif ORCH_ISA == ORCH_ISA_DSP
/// Computes a row of items side by side for a plain addition. Sums have a bit
/// to spare.
ORCH_HOT void add_plain(const Addition& addition, const PairRow<int8_t>& row) {
  const Addition add = addition;  // what is written cannot change it
  const uint32_t b_shift = static_cast<uint32_t>(-add.b.scale.shift);
  const uint32_t shift = static_cast<uint32_t>(-add.sum.scale.shift);
  const bool full = is_full(add.range);
  const int8_t* a = row.a;
  const int8_t* b = row.b;
  for (int8_t *to = row.to, *const end = to + row.count; to != end; ++to) {
    const int32_t x = (*a++ - add.a.zero_point) * (1 << kLeftShift);
    const int32_t y = (*b++ - add.b.zero_point) * (1 << kLeftShift);
    int32_t sum = divide_and_add(high_multiply_small(y, add.b.scale.multiplier),
                                 b_shift, 0);
    asm("smmlar %0, %1, %2, %0"
        : "+r"(sum)
        : "r"(x * 2), "r"(add.a.scale.multiplier));
    sum = divide_and_add(high_multiply_small(sum, add.sum.scale.multiplier),
                         shift, add.sum.zero_point);
    *to = clamp_item(sum, full, add.range);
  }
}
#endif

/// The largest zero point of an addend, which may be no item: differences from
/// it then have 12 bits, and can be shifted by 20.
constexpr int32_t kMostZeroPoint = 1920;

/// Reads zero point, which may be between `most` and its negative, multiplier
/// and shift. Errors: InvalidArgument.
__attribute__((noinline)) Error read_addend(const Args& args, int first,
                                            int32_t most, Addend& addend) {
  ORCH_TRY(read_between(args, first, -most, most, addend.zero_point));
  return read_scale(args, first + 1, addend.scale);
}

}  // namespace

// cortex_m::quantized_add.out(Tensor self, int self_zero_point,
//   int self_multiplier, int self_shift, Tensor other, int other_zero_point,
//   int other_multiplier, int other_shift, int output_zero_point,
//   int output_multiplier, int output_shift, int activation_min,
//   int activation_max, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_add_out(const Args& args) {
  // First the addend without a shift, for instructions that add products.
  const int first = ORCH_ISA != ORCH_ISA_SCALAR && args.integer(7) == 0 ? 5 : 1;
  const int second = 6 - first;
  const Tensor& a = args.tensor(first - 1);
  const Tensor& b = args.tensor(second - 1);
  Tensor& out = args.tensor(13);

  Addition add;
  ORCH_TRY(read_addend(args, first, kMostZeroPoint, add.a));
  ORCH_TRY(read_addend(args, second, kMostZeroPoint, add.b));
  ORCH_TRY(read_addend(args, 8, -INT8_MIN, add.sum));
  ORCH_CHECK(add.sum.zero_point <= INT8_MAX, Error::InvalidArgument);
  ORCH_TRY(read_range(args, 11, 12, add.range));
  ORCH_TRY(prepare_pair(args.tensor(0), args.tensor(4), out));
#if ORCH_ISA != ORCH_ISA_SCALAR
  const bool plain = is_plain(add);
#endif
  for_each_pair_row<int8_t>(a, b, out, [&](PairRow<int8_t> row) {
#if ORCH_ISA != ORCH_ISA_SCALAR
    if (plain && row.a_step == 1 && row.b_step == 1 && row.to_step == 1) {
      add_plain(add, row);
      return;
    }
#endif
    add_row(add, row);
  });
  return Error::Ok;
}

// Prepared: any addition, and with DSP or vector instructions a plain one of
// items side by side.
void quantized_add(const PreparedCall& prepared) {
  const auto& call = static_cast<const AddCall&>(prepared);
  for_each_prepared_row<int8_t>(
      call, [&](const PairRow<int8_t>& row) { add_row(call.add, row); });
}

#if ORCH_ISA != ORCH_ISA_SCALAR
void quantized_add_plain(const PreparedCall& prepared) {
  const auto& call = static_cast<const AddCall&>(prepared);
  for_each_prepared_row<int8_t>(
      call, [&](const PairRow<int8_t>& row) { add_plain(call.add, row); });
}
#endif

}  // namespace orch::cortex_m
