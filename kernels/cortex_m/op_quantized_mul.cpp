#include <stddef.h>

#include "assembly.h"
#include "elementwise.h"
#include "image.h"
#include "orch/kernel.h"
#if ORCH_ISA == ORCH_ISA_DSP
#include "high_multiply.h"
#endif

namespace orch::cortex_m {
namespace {

/// By itself, as its checks end near where they branch.
__attribute__((noinline)) Error read_product(const Args& args,
                                             Product& product) {
  // Quantizers give a factor such as hardsigmoid(x), of which they only see a
  // part of the range, zero points that are no items.
  ORCH_TRY(read_between(args, 1, -32768, 32767, product.a));
  ORCH_TRY(read_between(args, 3, -32768, 32767, product.b));
  ORCH_TRY(read_item(args, 4, product.zero_point));
  return read_scale(args, 5, product.scale);
}

/// Computes a row of items.
ORCH_ALWAYS_INLINE void multiply_row(const Product& product,
                                     const PairRow<int8_t>& row) {
  map_row(row, [&](int32_t x, int32_t y) {
    const int32_t scaled = product.scale.of((x - product.a) * (y - product.b));
    return clamp(wrapping_sum(scaled, product.zero_point), {-128, 127});
  });
}

#if ORCH_ISA == ORCH_ISA_MVE
/// Whether differences from zero points have 16 bits, those of `a` also when
/// they are made larger instead of the product.
bool suits_vectors(const Product& product) {
  const auto most = [](int32_t zero_point) {
    return (zero_point < 0 ? -zero_point : zero_point) - INT8_MIN;
  };
  const int32_t shift = product.scale.shift;
  return product.scale.multiplier >= 0 &&
         most(product.a) <= INT16_MAX >> (shift > 0 ? shift : 0) &&
         most(product.b) <= INT16_MAX;
}

/// What vectors are multiplied with. Known to the assembly.
struct VectorProduct {
  int32_t count;
  int32_t larger;  // what `a` is multiplied by
  int32_t a_added;
  int32_t b_added;
  int32_t divides;  // whether products are shifted to the right
  int32_t multiplier;
  int32_t right;
  int32_t zero_point;
};

static_assert(offsetof(VectorProduct, larger) == 4 &&
                  offsetof(VectorProduct, a_added) == 8 &&
                  offsetof(VectorProduct, b_added) == 12 &&
                  offsetof(VectorProduct, divides) == 16 &&
                  offsetof(VectorProduct, multiplier) == 20 &&
                  offsetof(VectorProduct, right) == 24 &&
                  offsetof(VectorProduct, zero_point) == 28,
              "the assembly knows where things are");

// Items eight at a time; the rest are the first ones of a vector. Products of
// neighbours are in two vectors, so vpr must not stand for lanes of these: it
// only counts where memory is read and written. Negative products are made
// smaller by one before they are shifted to the right, as in `add_plain`.
extern "C" void orch_multiply_vectors(const int8_t* a, const int8_t* b,
                                      int8_t* to, const VectorProduct* product);
asm(ORCH_FUNCTION("orch_multiply_vectors") ORCH_SAVE R"(
  vpush {d8-d9}
  .cfi_adjust_cfa_offset 16
  ldm r3, {r4-r11}
  vdup.16 q4, r5
  mov lr, #8
  vctp.16 lr
  lsr lr, r4, #3
  and r4, r4, #7
  wls lr, lr, 2f
1:
  vpstt
  vldrbt.s16 q0, [r0], #8
  vldrbt.s16 q1, [r1], #8
  vmlas.s16 q0, q4, r6
  vadd.i16 q1, q1, r7
  vmullb.s16 q2, q0, q1
  vmullt.s16 q3, q0, q1
  vqdmulh.s32 q0, q2, r8  @ -1 for negative numbers
  vqdmulh.s32 q1, q3, r8
  vqrdmlah.s32 q0, q2, r9
  vqrdmlah.s32 q1, q3, r9
  vrshl.s32 q0, r10
  vrshl.s32 q1, r10
  vqmovnb.s32 q0, q0
  vqmovnt.s32 q0, q1
  vqadd.s16 q0, q0, r11
  vqmovnb.s16 q0, q0
  vpst
  vstrbt.16 q0, [r2], #8
  le lr, 1b
2:
  cbz r4, 3f
  vctp.16 r4
  movs r4, #0
  mov lr, #1
  b 1b
3:
  vpop {d8-d9}
)" ORCH_RETURN ORCH_END("orch_multiply_vectors"));

/// Computes a row of items side by side of which `suits_vectors` is true.
ORCH_HOT void multiply_vectors(const Product& product,
                               const PairRow<int8_t>& row) {
  const int32_t shift = product.scale.shift;
  const int32_t larger = 1 << (shift > 0 ? shift : 0);
  const VectorProduct by = {row.count,
                            larger,
                            -product.a * larger,
                            -product.b,
                            shift < 0 ? 1 : 0,
                            product.scale.multiplier,
                            shift < 0 ? shift : 0,
                            product.zero_point};
  orch_multiply_vectors(row.a, row.b, row.to, &by);
}
#elif ORCH_ISA == ORCH_ISA_DSP
/// Whether products leave a bit free once they are made larger: zero points
/// that are items give 17 bits.
bool suits_dsp(const Product& product) {
  return product.a >= -128 && product.a <= 128 && product.b >= -128 &&
         product.b <= 128 && product.scale.shift <= 13;
}

/// Computes a row of which `suits_dsp` is true.
ORCH_HOT void multiply_dsp(const Product& given, PairRow<int8_t> row) {
  const Product product = given;  // what is written cannot change it
  const int32_t shift = product.scale.shift;
  const uint32_t left = static_cast<uint32_t>(shift > 0 ? shift : 0);
  const uint32_t right = static_cast<uint32_t>(shift < 0 ? -shift : 0);
  for (; row.count > 0; --row.count) {
    const int32_t value = (*row.a - product.a) * (*row.b - product.b);
    const int32_t large =
        static_cast<int32_t>(static_cast<uint32_t>(value) << left);
    const int32_t item =
        divide_and_add(high_multiply_small(large, product.scale.multiplier),
                       right, product.zero_point);
    *row.to = clamp_item(item, true, {INT8_MIN, INT8_MAX});
    row.a += row.a_step;
    row.b += row.b_step;
    row.to += row.to_step;
  }
}
#endif

}  // namespace

// cortex_m::quantized_mul.out(Tensor self, int self_zero_point, Tensor other,
//   int other_zero_point, int output_zero_point, int output_multiplier,
//   int output_shift, *, Tensor(a!) out) -> Tensor(a!)
Error quantized_mul_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(2);
  Tensor& out = args.tensor(7);

  Product product;
  ORCH_TRY(read_product(args, product));
  ORCH_TRY(prepare_pair(self, other, out));
#if ORCH_ISA == ORCH_ISA_MVE
  const bool vectors = suits_vectors(product);
#elif ORCH_ISA == ORCH_ISA_DSP
  const bool dsp = suits_dsp(product);
#endif
  for_each_pair_row<int8_t>(self, other, out, [&](PairRow<int8_t> row) {
#if ORCH_ISA == ORCH_ISA_MVE
    if (vectors && row.a_step == 1 && row.b_step == 1 && row.to_step == 1) {
      multiply_vectors(product, row);
      return;
    }
#elif ORCH_ISA == ORCH_ISA_DSP
    if (dsp) {
      multiply_dsp(product, row);
      return;
    }
#endif
    multiply_row(product, row);
  });
  return Error::Ok;
}

// Prepared: any product, with vectors, and with DSP instructions.
void quantized_mul(const PreparedCall& prepared) {
  const auto& call = static_cast<const MultiplyCall&>(prepared);
  for_each_prepared_row<int8_t>(call, [&](const PairRow<int8_t>& row) {
    multiply_row(call.product, row);
  });
}

#if ORCH_ISA == ORCH_ISA_MVE
void quantized_mul_vectors(const PreparedCall& prepared) {
  const auto& call = static_cast<const MultiplyCall&>(prepared);
  for_each_prepared_row<int8_t>(call, [&](const PairRow<int8_t>& row) {
    multiply_vectors(call.product, row);
  });
}
#elif ORCH_ISA == ORCH_ISA_DSP
void quantized_mul_dsp(const PreparedCall& prepared) {
  const auto& call = static_cast<const MultiplyCall&>(prepared);
  for_each_prepared_row<int8_t>(call, [&](const PairRow<int8_t>& row) {
    multiply_dsp(call.product, row);
  });
}
#endif

}  // namespace orch::cortex_m
