// Ints from numbers, and doubles. A double that 64 bits do not hold, or NaN, is
// refused, where Python would raise or go on with a longer int.
#include "orch/kernel.h"
#include "prim_ops/numbers.h"

namespace orch::prim_ops {
namespace {

/// Writes argument 0 as an int: a double without its fraction plus `up(whole,
/// fraction)`. Where there is a fraction, that cannot overflow.
template <typename Up>
Error to_int(const Args& args, Up up) {
  const Scalar& a = args.scalar(0);
  int64_t whole = a.bits();
  if (a.is_floating()) {
    double rest = 0;
    ORCH_TRY_DATA(split(a.to_double(), whole, rest));
    whole += up(whole, rest);
  }
  args.value(1).set_int(whole);
  return Error::Ok;
}

}  // namespace

// executorch_prim::sym_float.Scalar(Scalar a) -> float
Error sym_float_Scalar(const Args& args) {
  args.value(1).set_double(args.scalar(0).to_double());
  return Error::Ok;
}

// executorch_prim::sym_int.Scalar(Scalar a) -> SymInt
// executorch_prim::trunc.Scalar(Scalar a) -> SymInt
Error sym_int_Scalar(const Args& args) {
  return to_int(args, [](int64_t, double) { return 0; });
}

// executorch_prim::ceil.Scalar(Scalar a) -> SymInt
Error ceil_Scalar(const Args& args) {
  return to_int(args, [](int64_t, double rest) { return rest > 0 ? 1 : 0; });
}

// executorch_prim::round.Scalar(Scalar a) -> SymInt
// A half goes to the even neighbour, as in Python.
Error round_Scalar(const Args& args) {
  return to_int(args, [](int64_t whole, double rest) {
    const double size = rest < 0 ? -rest : rest;
    if (size < 0.5 || (size == 0.5 && whole % 2 == 0)) return 0;
    return rest < 0 ? -1 : 1;
  });
}

}  // namespace orch::prim_ops
