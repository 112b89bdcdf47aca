#include "cortex_m/exponential.h"
#include "image.h"
#include "orch/kernel.h"
#include "util/check.h"
#include "util/strided_loop.h"

namespace orch::cortex_m_int16 {
namespace {

using cortex_m::Softmax;

constexpr uint32_t kOutputBits = 15;  // behind the point of the output

/// What the exponentials of a row are multiplied by, Q0.31, and the bits that
/// are then too many.
struct Shares {
  /// Of a sum of at least 2^31.
  explicit Shares(uint64_t sum) {
    uint32_t dropped = 0;
    for (; sum >> 32 != 0; sum >>= 1) ++dropped;
    scale = cortex_m::reciprocal(static_cast<int32_t>(sum - (1U << 31)));
    bits = 31 - kOutputBits + dropped;
  }

  int32_t of(int32_t term) const {
    if (bits > 31) return 0;
    return cortex_m::divide_by_power(cortex_m::high_multiply(scale, term),
                                     bits);
  }

  int32_t scale;
  uint32_t bits;
};

/// Items of a row, with steps between them.
ORCH_HOT void softmax_row(const Softmax& given, const int16_t* x,
                          int32_t x_step, int16_t* y, int32_t y_step,
                          int32_t count) {
  const Softmax softmax = given;  // what is written cannot change it
  int32_t largest = INT16_MIN;
  for (int32_t i = 0; i < count; ++i) {
    if (x[i * x_step] > largest) largest = x[i * x_step];
  }
  // The largest item's exponential, which is 1, has one bit less than 2^31.
  uint64_t sum = 1;
  for (int32_t i = 0; i < count; ++i) {
    int32_t term;
    if (cortex_m::power(softmax, x[i * x_step] - largest, term)) {
      sum += static_cast<uint32_t>(term);
    }
  }
  const Shares shares(sum);
  for (int32_t i = 0; i < count; ++i) {
    int32_t share = 0;
    int32_t term;
    if (cortex_m::power(softmax, x[i * x_step] - largest, term)) {
      share = shares.of(term);
    }
    y[i * y_step] =
        static_cast<int16_t>(cortex_m::clamp(share, {0, INT16_MAX}));
  }
}

}  // namespace

// cortex_m::softmax.out(Tensor input, int dim, int input_zero_point,
//   int output_zero_point, int input_multiplier, int input_shift,
//   int diff_min, *, Tensor(a!) out) -> Tensor(a!)
//
// The output has zero point 0 and scale 1/32768.
Error softmax_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(7);

  ORCH_CHECK(input.dtype == ScalarType::Short && out.dtype == ScalarType::Short,
             Error::InvalidArgument);
  int dim;
  Softmax softmax;
  int32_t shift;
  ORCH_TRY(read_dim(args.integer(1), input.dim, dim));
  ORCH_TRY(read_zero(args, 3));
  ORCH_TRY(cortex_m::read_between(args, 4, INT32_MIN, INT32_MAX,
                                  softmax.multiplier));
  ORCH_TRY(cortex_m::read_between(args, 5, 0, 31, shift));
  // 0 counts: the sum has the largest item.
  ORCH_TRY(cortex_m::read_between(args, 6, INT32_MIN, 0, softmax.diff_min));
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
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      softmax_row(
          softmax,
          input.data<int16_t>() + loop.offset(1) + i * loop.row_stride(1),
          x_step,
          out.mutable_data<int16_t>() + loop.offset(0) + i * loop.row_stride(0),
          y_step, count);
    }
  }
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
