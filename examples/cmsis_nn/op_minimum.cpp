#include "rows.h"

namespace cmsis_adapter {

// cortex_m::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error minimum_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_TRY(prepare_pair(self, other, out));
  return for_each_run(
      self, other, out,
      [](const int8_t* a, const int8_t* b, int8_t* to, int32_t count) {
        const cmsis_nn_context context = {nullptr, 0};
        const cmsis_nn_dims dims = {1, 1, 1, count};
        return arm_minimum_s8(&context, a, &dims, b, &dims, to, &dims);
      });
}

}  // namespace cmsis_adapter
