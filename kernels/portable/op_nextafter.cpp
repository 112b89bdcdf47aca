#include "orch_selected/op_nextafter.h"

#include "orch/kernel.h"
#include "util/binary.h"

namespace orch::portable {
namespace {

/// The number next to `from` on the way to `to`; `to` where they are equal.
template <typename T>
T next_after(T from, T to) {
  const auto one = number_of(from);
  const auto other = number_of(to);
  if (is_nan(one) || is_nan(other)) return static_cast<T>(one + other);
  if (one == other) return to;
  using U = UnsignedOf<sizeof(T)>;
  constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  U bits;
  memcpy(&bits, &from, sizeof bits);
  // Floats of one sign have the order of their bits.
  if (one == 0) {
    bits = static_cast<U>(other < 0 ? kSign | 1 : 1);
  } else if ((one < other) == (one > 0)) {
    ++bits;
  } else {
    --bits;
  }
  memcpy(&from, &bits, sizeof from);
  return from;
}

}  // namespace

// aten::nextafter.out(Tensor self, Tensor other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error nextafter_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_nextafter_out;
  return binary<kDtypes.bits, kFloating.bits>(
      args.tensor(0), args.tensor(1), args.tensor(2), [](auto type) {
        using T = typename decltype(type)::type;
        return [](T from, T to) { return next_after(from, to); };
      });
}

}  // namespace orch::portable
