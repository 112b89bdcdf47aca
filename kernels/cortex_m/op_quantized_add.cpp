#include <stddef.h>

#include "assembly.h"
#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"

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
/// larger or changes its sign. With DSP instructions, sums have 30 bits and a
/// sign.
bool is_plain(const Addition& add) {
  const Scale& a = add.a.scale;
  const Scale& b = add.b.scale;
  const Scale& sum = add.sum.scale;
#if ORCH_ISA == ORCH_ISA_DSP
  constexpr int32_t kHalf = 1 << 30;
  if (a.multiplier != kHalf || (b.shift == 0 && b.multiplier > kHalf) ||
      sum.shift < -21) {
    return false;
  }
#endif
  return is_near(add.a.zero_point) && is_near(add.b.zero_point) &&
         (a.multiplier | b.multiplier | sum.multiplier) >= 0 && a.shift == 0 &&
         b.shift <= 0 && sum.shift < 0;
}
#endif

#if ORCH_ISA == ORCH_ISA_MVE
static_assert(sizeof(Addend) == 12 && offsetof(Addition, range) == 36,
              "the assembly knows where things are");

// Items side by side for a plain addition, four at a time, or eight whose
// limits are those of int8.
using AddFn = void(const int8_t* a, const int8_t* b, int8_t* to,
                   const Addition* add, int32_t count);
extern "C" AddFn orch_add_fours;
extern "C" AddFn orch_add_eights;
asm(R"(
  @ Loads what a plain addition is computed with.
  .macro orch_load_addition
  mov r4, #0x100000
  vdup.32 q6, r4
  ldm r3, {r3, r4, r5, r6, r8, r9, r10, r11, lr}
  vdup.32 q5, r10
  rsbs r3, r3, #0
  lsls r3, r3, #20
  rsbs r6, r6, #0
  lsls r6, r6, #20
  lsr r5, r9, #31  @ whether b is shifted
  mov r10, lr
  .endm
  @ Sums of four items, less their zero point. Sums have a bit to spare. Ties of
  @ negative numbers go down, for which they are made smaller by one before they
  @ are shifted, if they are: with the number 0 the product is 0, and one less
  @ does not count.
  .macro orch_add_four sum
  vldrb.s32 q0, [r1], #4
  vmlas.s32 q0, q6, r6
  vldrb.s32 q2, [r0], #4
  vqdmulh.s32 q1, q0, r5  @ -1 for negative ones
  vmlas.s32 q2, q6, r3
  vqrdmlah.s32 q1, q0, r8
  vrshl.s32 q1, r9
  vqrdmlah.s32 q1, q2, r4
  vshr.s32 \sum, q1, #31
  vqrdmlah.s32 \sum, q1, r11
  vrshl.s32 \sum, r10
  .endm
)"
#if ORCH_FAVOUR_SPEED
    ORCH_FUNCTION("orch_add_eights") ORCH_SAVE_VECTORS R"(
  ldr r12, [sp, #100]
  lsrs r12, r12, #3
  movs r4, #0
  vidup.u16 q4, r4, #1  @ where sums go: those of both fours in turn
  vmov.i16 q3, #1
  vand q3, q3, q4
  vshl.i16 q3, q3, #2
  vshr.u16 q4, q4, #1
  vadd.i16 q4, q4, q3
  orch_load_addition
  dls lr, r12
  vmov.32 r12, d10[0]
1:
  orch_add_four q3
  orch_add_four q0
  vqmovnb.s32 q3, q3
  vqmovnt.s32 q3, q0
  vqadd.s16 q3, q3, r12
  vqmovnb.s16 q3, q3
  vstrb.16 q3, [r2, q4]
  adds r2, #8
  le lr, 1b
)" ORCH_RETURN_VECTORS ORCH_END("orch_add_eights")
#endif
        ORCH_FUNCTION("orch_add_fours") ORCH_SAVE_VECTORS R"(
  ldr r12, [sp, #100]
  ldrd r4, r5, [r3, #36]
  vdup.32 q3, r4
  vdup.32 q4, r5
  orch_load_addition
  wlstp.32 lr, r12, 2f
1:
  orch_add_four q0
  vadd.i32 q0, q0, q5
  vmax.s32 q0, q0, q3
  vmin.s32 q0, q0, q4
  vstrb.32 q0, [r2], #4
  letp lr, 1b
2:
)" ORCH_RETURN_VECTORS ORCH_END("orch_add_fours") R"(
  .purgem orch_load_addition
  .purgem orch_add_four
)");

/// Computes a row of items side by side for a plain addition.
ORCH_HOT void add_plain(const Addition& add, const PairRow<int8_t>& row) {
  int32_t done = 0;
#if ORCH_FAVOUR_SPEED
  // To set them up takes as long as fewer items save.
  if (row.count >= 64 && add.range.low == INT8_MIN &&
      add.range.high == INT8_MAX) {
    done = row.count / 8 * 8;
    orch_add_eights(row.a, row.b, row.to, &add, row.count);
  }
#endif
  orch_add_fours(row.a + done, row.b + done, row.to + done, &add,
                 row.count - done);
}
#elif ORCH_ISA == ORCH_ISA_DSP
/// What `orch_add_plain` takes besides pointers. Known to the assembly.
struct PlainAddition {
  const int8_t* end;  // of the outputs
  int32_t a_zero;     // minus the zero point, with as many more bits as items
  int32_t ties;       // taken off negative sums, if that changes anything
  int32_t b_zero;     // as of a
  int32_t b_multiplier;
  int32_t b_shift;  // to the right
  int32_t multiplier;
  int32_t added;  // to the high half of the product
  int32_t shift;  // to the right
};

// Where speed counts, and no ties do, four items at a time; those that are left
// one by one.
#if !ORCH_FAVOUR_SPEED
#define ORCH_ADD_FOURS ""
#else
#define ORCH_ADD_FOURS \
  "  cmp r5, #0\n"     \
  "  bne 1f\n"         \
  "  subs r3, #3\n"    \
  "  cmp r2, r3\n"     \
  "  bhs 3f\n"         \
  "2:\n"               \
  "  .rept 4\n"        \
  "  orch_add_item\n"  \
  "  .endr\n"          \
  "  cmp r2, r3\n"     \
  "  blo 2b\n"         \
  "3:\n"               \
  "  adds r3, #3\n"    \
  "  cmp r2, r3\n"     \
  "  it eq\n"          \
  "  popeq {r4-r11, pc}\n"
#endif

// Computes items side by side. r0: `a`; r1: `b`; r2: `to`; r3: `add`.
//
// Half of what belongs to `a` is exact. That of `b` is rounded twice: what a
// shift drops last is its carry, and a negative number is made smaller by one
// before. Both roundings of the sum are one, as in packed_dsp.h, with sums that
// are shifted by two before.
extern "C" void orch_add_plain(const int8_t* a, const int8_t* b, int8_t* to,
                               const PlainAddition* add);
asm(R"(
  .macro orch_add_item ties
  ldrsb r7, [r1], #1
  ldrsb r6, [r0], #1
  add r7, r8, r7, lsl #21
  smmulr r7, r7, r9
  add r6, r4, r6, lsl #19
  adds r7, r7, r7, asr #31
  asrs r7, r10
  adc r7, r7, r6
  lsl r7, #2
  smmla r7, r7, r11, r12
  .ifnb \ties
  cbz r5, 9f
  cmp r7, r12
  it lt
  sublt r7, r5
9:
  .endif
  asr r7, lr
  ssat r7, #8, r7
  strb r7, [r2], #1
  .endm
)" ORCH_FUNCTION("orch_add_plain") ORCH_SAVE R"(
  ldm r3, {r3-r5, r8-r12, lr}
)" ORCH_ADD_FOURS R"(
1:
  orch_add_item ties
  cmp r2, r3
  bne 1b
)" ORCH_RETURN ORCH_END("orch_add_plain") "  .purgem orch_add_item\n");

/// Computes a row of items side by side for a plain addition.
void add_plain(const Addition& add, const PairRow<int8_t>& row) {
  const int32_t shift = -add.sum.scale.shift;
  int8_t* const end = row.to + row.count;
  const PlainAddition plain = {
      end, -add.a.zero_point * (1 << (kLeftShift - 1)),
      // With the lowest item as the offset, all of these sums are clamped.
      add.sum.zero_point == INT8_MIN ? 0 : 2,
      -add.b.zero_point * (2 << kLeftShift), add.b.scale.multiplier,
      -add.b.scale.shift, add.sum.scale.multiplier,
      add.sum.zero_point * (2 << shift) + (1 << shift) + 1, shift + 1};
  orch_add_plain(row.a, row.b, row.to, &plain);
  if (is_full(add.range)) return;
  for (int8_t* to = row.to; to != end; ++to) {
    *to = static_cast<int8_t>(clamp(*to, add.range));
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
    if (plain && row.a_step == 1 && row.b_step == 1 && row.to_step == 1 &&
        row.count > 0) {
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
