#include <string.h>

#include "exponential.h"
#include "high_multiply.h"
#include "image.h"
#include "isa.h"
#include "orch/kernel.h"
#include "prepared.h"
#include "requantize.h"
#include "util/check.h"
#include "util/strided_loop.h"
#if ORCH_ISA == ORCH_ISA_MVE
#include "softmax_mve.h"
#endif

namespace orch::cortex_m {
namespace {

/// Sums of a row are Q12.19.
constexpr uint32_t kSumBits = 12;
constexpr uint32_t kOutputBits = 8;  // behind the point of the output
/// From here on every share is less than half a step of the output.
constexpr uint32_t kMaxSum = 1U << 28;

/// What the items of a row are multiplied by, and how many bits are then too
/// many.
struct Shares {
  explicit Shares(uint32_t sum) : none(sum == 0 || sum >= kMaxSum) {
    if (none) return;
    // A sum is at least one exp(0): headroom is 4 to 12 bits.
    const uint32_t headroom = static_cast<uint32_t>(__builtin_clz(sum));
    scale = reciprocal(static_cast<int32_t>((sum << headroom) - (1U << 31)));
    bits = kSumBits + 31 - kOutputBits - headroom;
  }

  bool none;  // each is less than half a step
  int32_t scale = 0;
  uint32_t bits = 0;
};

#if ORCH_ISA == ORCH_ISA_MVE
/// Items of a row side by side, for a multiplier that is not negative.
ORCH_HOT void vector_row(const Softmax& softmax, const int8_t* x, int8_t* y,
                         int32_t count) {
  const SoftmaxRow given = {x,
                            count,
                            largest_item(x, count),
                            softmax.diff_min,
                            softmax.shift,
                            softmax.multiplier};
  const Shares shares(softmax_sum(given));
  if (shares.none) {
    memset(y, -128, static_cast<size_t>(count));
  } else {
    softmax_shares(given, shares.scale, shares.bits, y);
  }
}
#endif

/// Items of a row, with steps between them.
ORCH_HOT void softmax_row(const Softmax& given, const int8_t* x, int32_t x_step,
                          int8_t* y, int32_t y_step, int32_t count) {
  const Softmax softmax = given;  // what is written cannot change it
  int32_t largest = INT8_MIN;
  for (int32_t i = 0; i < count; ++i) {
    if (x[i * x_step] > largest) largest = x[i * x_step];
  }
  uint32_t sum = 0;
  for (int32_t i = 0; i < count; ++i) {
    int32_t term;
    if (sum < kMaxSum && power(softmax, x[i * x_step] - largest, term)) {
      sum += static_cast<uint32_t>(divide_by_power(term, kSumBits));
    }
  }
  const Shares shares(sum);
  for (int32_t i = 0; i < count; ++i) {
    int32_t share = 0;
    int32_t term;
    if (!shares.none && power(softmax, x[i * x_step] - largest, term)) {
      share = divide_by_power(high_multiply(shares.scale, term), shares.bits);
    }
    y[i * y_step] = static_cast<int8_t>(clamp(share - 128, {-128, 127}));
  }
}

}  // namespace

// cortex_m::softmax.out(Tensor input, int dim, int input_zero_point,
//   int output_zero_point, int input_multiplier, int input_shift,
//   int diff_min, *, Tensor(a!) out) -> Tensor(a!)
//
// The output has zero point -128 and scale 1/256. input_zero_point does not
// matter: only distances count.
Error softmax_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(7);

  ORCH_CHECK(input.dtype == ScalarType::Char && out.dtype == ScalarType::Char,
             Error::InvalidArgument);
  int dim;
  Softmax softmax;
  int32_t shift;
  ORCH_TRY(read_dim(args.integer(1), input.dim, dim));
  ORCH_CHECK(args.integer(3) == -128, Error::InvalidArgument);
  ORCH_TRY(read_between(args, 4, INT32_MIN, INT32_MAX, softmax.multiplier));
  ORCH_TRY(read_between(args, 5, 0, 31, shift));
  ORCH_TRY(read_between(args, 6, INT32_MIN, INT32_MAX, softmax.diff_min));
  softmax.shift = static_cast<uint32_t>(shift);
  ORCH_TRY(set_sizes(out, input.sizes()));
  if (out.numel() == 0) return Error::Ok;

  const Strides x_strides(input);
  const Strides y_strides(out);
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d != dim) loop.add(out.size(d), y_strides[d], x_strides[d]);
  }
  const bool scalar = out.dim == 0;
  const int32_t count = scalar ? 1 : out.size(dim);
  const int32_t x_step = scalar ? 0 : x_strides[dim];
  const int32_t y_step = scalar ? 0 : y_strides[dim];
#if ORCH_ISA == ORCH_ISA_MVE
  const bool vectors = x_step == 1 && y_step == 1 && softmax.multiplier >= 0;
#endif
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const int8_t* const x =
          input.data<int8_t>() + loop.offset(1) + i * loop.row_stride(1);
      int8_t* const y =
          out.mutable_data<int8_t>() + loop.offset(0) + i * loop.row_stride(0);
#if ORCH_ISA == ORCH_ISA_MVE
      if (vectors) {
        vector_row(softmax, x, y, count);
        continue;
      }
#endif
      softmax_row(softmax, x, x_step, y, y_step, count);
    }
  }
  return Error::Ok;
}

// Prepared: rows of items side by side.
void softmax(const PreparedCall& prepared) {
  const auto& call = static_cast<const SoftmaxCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  for (int32_t left = call.rows; left > 0; --left) {
    softmax_row(call.softmax, x, 1, y, 1, call.count);
    x += call.count;
    y += call.count;
  }
}

#if ORCH_ISA == ORCH_ISA_MVE
void softmax_vectors(const PreparedCall& prepared) {
  const auto& call = static_cast<const SoftmaxCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  for (int32_t left = call.rows; left > 0; --left) {
    vector_row(call.softmax, x, y, call.count);
    x += call.count;
    y += call.count;
  }
}
#endif

}  // namespace orch::cortex_m
