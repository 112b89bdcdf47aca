#include "orch_selected/op_gelu.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/unary.h"
#include "util/word.h"

namespace orch::portable {

// aten::gelu.out(Tensor self, *, str approximate="none", Tensor(a!) out)
//   -> Tensor(a!)
Error gelu_out(const Args& args) {
  const List& approximate = args.value(1).list();
  const bool with_tanh = is_word(approximate, "tanh");
  ORCH_CHECK(with_tanh || is_word(approximate, "none"), Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_gelu_out;
  return unary_same<kDtypes.bits>(
      args.tensor(0), args.tensor(2), [with_tanh](auto type) {
        using T = typename decltype(type)::type;
        using C = Compute<T>;
        return of_lanes(type, [with_tanh](auto value) {
          const auto x = number_of(value);
          const auto share = with_tanh
                                 ? math::tanh(C(0.79788456080286535588) *
                                              (x + C(0.044715) * (x * x * x)))
                                 : math::erf(x * C(0.7071067811865475244));
          return static_cast<decltype(value)>(C(0.5) * x * (1 + share));
        });
      });
}

}  // namespace orch::portable
