#include <string.h>

#include "orch/kernel.h"
#include "prepared.h"
#include "util/check.h"
#include "util/move_items.h"

namespace orch::cortex_m {

// cortex_m::transpose.out(Tensor input, int[] perm, *, Tensor(a!) out)
//   -> Tensor(a!)
Error transpose_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const IntList perm = args.int_list(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(input.dtype == ScalarType::Char && out.dtype == ScalarType::Char &&
                 perm.size() == input.dim,
             Error::InvalidArgument);
  unsigned dims = 0;
  ORCH_TRY(read_dims(perm, input.dim, dims));  // each of them once
  const Strides strides(input);
  int32_t steps[kMaxDim];
  int32_t sizes[kMaxDim];
  for (int i = 0; i < input.dim; ++i) {
    int from = 0;
    ORCH_TRY(read_dim(perm[i], input.dim, from));
    sizes[i] = input.size(from);
    steps[i] = strides[from];
  }
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input));
  const Strides out_strides(out);
  StridedLoop loop;
  loop_between(loop, out, sizes, out_strides.at, steps);
  if (!loop.valid()) return Error::Ok;
  loop.lengthen_rows();
  move_rows(loop, input.memory, out.memory, ScalarType::Char);
  return Error::Ok;
}

void transpose(const PreparedCall& prepared) {
  const auto& call = static_cast<const TransposeCall&>(prepared);
  const int8_t* x = static_cast<const int8_t*>(call.input);
  int8_t* y = static_cast<int8_t*>(call.out);
  const int32_t count = call.sizes[3];
  const int32_t step = call.steps[3];
  for (int32_t i = 0; i < call.sizes[0]; ++i) {
    for (int32_t j = 0; j < call.sizes[1]; ++j) {
      const int8_t* row = x + i * call.steps[0] + j * call.steps[1];
      for (int32_t k = call.sizes[2]; k > 0; --k) {
        if (step == 1) {
          memmove(y, row, static_cast<size_t>(count));
        } else {
          for (int32_t l = 0; l < count; ++l) y[l] = row[l * step];
        }
        y += count;
        row += call.steps[2];
      }
    }
  }
}

}  // namespace orch::cortex_m
