#include "orch_selected/op_logical_and.h"

#include "orch/kernel.h"
#include "util/compare.h"

namespace orch::portable {

// aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error logical_and_out(const Args& args) {
  constexpr DtypeSet kIn = selected::aten_logical_and_out_of_self |
                           selected::aten_logical_and_out_of_other;
  constexpr DtypeSet kOut = selected::aten_logical_and_out_of_out;
  return compare_tensors<kIn.bits, kOut.bits>(
      args, [](auto a, auto b) { return ((a != 0) & (b != 0)) != 0; });
}

}  // namespace orch::portable
