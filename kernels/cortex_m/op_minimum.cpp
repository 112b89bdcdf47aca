#include "elementwise.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

// cortex_m::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error minimum_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_TRY(prepare_pair(self, other, out));
  map_pairs<int8_t>(self, other, out,
                    [](int32_t a, int32_t b) { return a < b ? a : b; });
  return Error::Ok;
}

}  // namespace orch::cortex_m
