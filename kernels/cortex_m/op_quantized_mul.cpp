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

/// Computes a row of items.
ORCH_ALWAYS_INLINE void multiply_row(const Product& product,
                                     const PairRow<int8_t>& row) {
  map_row(row, [&](int32_t x, int32_t y) {
    const int32_t scaled = product.scale.of((x - product.a) * (y - product.b));
    return clamp(wrapping_sum(scaled, product.zero_point), {-128, 127});
  });
}

#if ORCH_ISA == ORCH_ISA_MVE
/// Computes what of a row is whole vectors, and leaves the rest.
ORCH_HOT void multiply_vectors(const Product& product, PairRow<int8_t>& row) {
  if (row.a_step != 1 || row.b_step != 1 || row.to_step != 1) return;
  const VectorScale scale(product.scale.multiplier, product.scale.shift, 0);
  const int32x4_t low = vdupq_n_s32(INT8_MIN);
  const int32x4_t high = vdupq_n_s32(INT8_MAX);
  const int32_t a = -product.a;
  const int32_t b = -product.b;
  const int32_t zero_point = product.zero_point;
  for (; row.count >= 4; row.count -= 4) {
    const int32x4_t x = vaddq_n_s32(vldrbq_s32(row.a), a);
    const int32x4_t y = vaddq_n_s32(vldrbq_s32(row.b), b);
    const int32x4_t sum = vaddq_n_s32(scale.of(vmulq_s32(x, y)), zero_point);
    vstrbq_s32(row.to, vminq_s32(vmaxq_s32(sum, low), high));
    row.a += 4;
    row.b += 4;
    row.to += 4;
  }
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
  // Quantizers give a factor such as hardsigmoid(x), of which they only see a
  // part of the range, zero points that are no items.
  ORCH_TRY(read_between(args, 1, -32768, 32767, product.a));
  ORCH_TRY(read_between(args, 3, -32768, 32767, product.b));
  ORCH_TRY(read_item(args, 4, product.zero_point));
  ORCH_TRY(read_scale(args, 5, product.scale));
  ORCH_TRY(prepare_pair(self, other, out));
#if ORCH_ISA == ORCH_ISA_DSP
  const bool dsp = suits_dsp(product);
#endif
  for_each_pair_row<int8_t>(self, other, out, [&](PairRow<int8_t> row) {
#if ORCH_ISA == ORCH_ISA_MVE
    multiply_vectors(product, row);
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
  for_each_prepared_row<int8_t>(call, [&](PairRow<int8_t> row) {
    multiply_vectors(call.product, row);
    multiply_row(call.product, row);
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
