#include "extreme.h"
#include "orch/kernel.h"

namespace orch::cortex_m {

// cortex_m::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error maximum_out(const Args& args) {
  return extreme<true>(args.tensor(0), args.tensor(1), args.tensor(2));
}

void maximum(const PreparedCall& prepared) {
  for_each_prepared_row<int8_t>(static_cast<const ExtremeCall&>(prepared),
                                extreme_row<true>);
}

}  // namespace orch::cortex_m
