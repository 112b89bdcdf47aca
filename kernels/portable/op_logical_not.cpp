#include "orch_selected/op_logical_not.h"

#include "orch/kernel.h"
#include "util/unary.h"

namespace orch::portable {

// aten::logical_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
Error logical_not_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);

  constexpr DtypeSet kIn = selected::aten_logical_not_out_of_self;
  constexpr DtypeSet kOut = selected::aten_logical_not_out_of_out;
  ORCH_TRY(set_sizes(out, self.sizes()));
  return map_in<kIn.bits, kOut.bits, kIn.bits>(
      self.dtype, self, out, [](auto type) {
        using T = typename decltype(type)::type;
        return [](T value) { return number_of(value) == 0; };
      });
}

}  // namespace orch::portable
