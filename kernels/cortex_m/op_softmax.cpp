#include <string.h>

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

// Numbers are fixed point: Qm.n has m bits in front of the point, n behind it,
// and a sign.
//
// Source: softmax of gemmlowp's fixedpoint.h and of CMSIS-NN, bit for bit.

/// Bits in front of the point of an exponent.
constexpr int kExponentBits = 5;
constexpr uint32_t kExponentFraction = 31 - kExponentBits;

/// Sums of a row are Q12.19.
constexpr uint32_t kSumBits = 12;
constexpr uint32_t kOutputBits = 8;  // behind the point of the output
/// From here on every share is less than half a step of the output.
constexpr uint32_t kMaxSum = 1U << 28;

/// value * 2^exponent, limited to what fits.
int32_t multiply_by_power(int32_t value, uint32_t exponent) {
  const int32_t limit = INT32_MAX >> exponent;
  if (value > limit) return INT32_MAX;
  if (value < -limit) return INT32_MIN;
  return static_cast<int32_t>(static_cast<uint32_t>(value) << exponent);
}

constexpr int32_t kExpEighth = 1895147668;  // exp(-1/8)
constexpr int32_t kThird = 715827883;

/// exp(-1/4), exp(-1/2), exp(-1), ... exp(-16).
constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308,
                               39332535,   720401,     242};

/// exp(value) as Q0.31, for a value from -32 to 0 as Q5.26.
ORCH_HOT int32_t exponential(int32_t value) {
  constexpr uint32_t kQuarter = 1U << (kExponentFraction - 2);
  if (value == 0) return INT32_MAX;
  // value = rest - steps / 4, where the rest is from -1/4 to 0.
  const uint32_t bits = static_cast<uint32_t>(value);
  const uint32_t rest = (bits & (kQuarter - 1)) - kQuarter;
  const uint32_t steps = (rest - bits) / kQuarter;

  // Four terms of the series around -1/8.
  const int32_t x =
      static_cast<int32_t>((rest << kExponentBits) + (1U << 28));  // Q0.31
  const int32_t x2 = high_multiply_small(x, x);
  const int32_t x3 = high_multiply_small(x2, x);
  const int32_t x4 = high_multiply_small(x2, x2);
  const int32_t higher = divide_by_power(
      high_multiply_small(divide_by_power(x4, 2) + x3, kThird) + x2, 1);
  int32_t result = kExpEighth + high_multiply_small(x + higher, kExpEighth);

  // Of more than 32, the seven lower bits count.
  uint32_t left = steps & 127;
  for (const int32_t* power = kPowers; left != 0; ++power) {
    if ((left & 1U) != 0) result = high_multiply(result, *power);
    left >>= 1;
  }
  return result;
}

/// 1 / (1 + value) for a value from 0 to 1, all of them Q0.31.
int32_t reciprocal(int32_t value) {
  constexpr int32_t k48Over17 = 1515870810;  // Q2.29
  constexpr int32_t kMinus32Over17 = -1010580540;
  constexpr int32_t kOne = 1 << 29;
  const int32_t half =
      static_cast<int32_t>((static_cast<uint32_t>(value) + (1U << 31)) >> 1);
  int32_t x = k48Over17 + high_multiply(half, kMinus32Over17);
  for (int step = 0; step < 3; ++step) {  // Newton's
    const int32_t error = kOne - high_multiply(half, x);
    x += multiply_by_power(high_multiply(x, error), 2);
  }
  return multiply_by_power(x, 1);
}

/// exp of an item's distance to the largest one. False: it counts as 0.
bool power(const Softmax& softmax, int32_t distance, int32_t& result) {
  if (distance < softmax.diff_min) return false;
  const uint32_t shifted = static_cast<uint32_t>(distance) << softmax.shift;
  result = exponential(
      high_multiply(static_cast<int32_t>(shifted), softmax.multiplier));
  return true;
}

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
  ORCH_TRY(resize(out, input.sizes()));
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
