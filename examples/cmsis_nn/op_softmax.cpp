#include "adapter.h"
#include "util/check.h"

namespace cmsis_adapter {

// cortex_m::softmax.out(Tensor input, int dim, int input_zero_point,
//   int output_zero_point, int input_multiplier, int input_shift,
//   int diff_min, *, Tensor(a!) out) -> Tensor(a!)
//
// Only over the dimension that is the innermost one in memory: CMSIS-NN has no
// strides.
Error softmax_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  Tensor& out = args.tensor(7);

  ORCH_CHECK(input.dtype == ScalarType::Char && out.dtype == ScalarType::Char,
             Error::InvalidArgument);
  int dim;
  int32_t multiplier;
  int32_t shift;
  int32_t diff_min;
  ORCH_TRY(read_dim(args.integer(1), input.dim, dim));
  ORCH_CHECK(args.integer(3) == -128, Error::InvalidArgument);
  ORCH_TRY(read_between(args.integer(4), INT32_MIN, INT32_MAX, multiplier));
  ORCH_TRY(read_between(args.integer(5), 0, 31, shift));
  ORCH_TRY(read_between(args.integer(6), INT32_MIN, INT32_MAX, diff_min));
  ORCH_TRY(resize(out, input.sizes()));
  if (out.numel() == 0) return Error::Ok;
  ORCH_CHECK(input.dim > 0 && same_layout(input, out) &&
                 input.order[input.dim - 1] == dim,
             Error::NotSupported);
  const int32_t count = input.size(dim);
  arm_softmax_s8(input.data<int8_t>(), input.numel() / count, count, multiplier,
                 shift, diff_min, out.mutable_data<int8_t>());
  return Error::Ok;
}

}  // namespace cmsis_adapter
