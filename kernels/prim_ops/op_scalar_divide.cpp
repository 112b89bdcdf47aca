// Quotients and remainders of numbers, rounded as Python does: towards minus
// infinity. An int divided by 0 is refused; doubles give what ExecuTorch gives.
#include "orch/kernel.h"
#include "prim_ops/numbers.h"
#include "util/remainder.h"

namespace orch::prim_ops {
namespace {

/// Quotient and remainder, of which a quotient of 2^63 does not fit.
Error divide(int64_t a, int64_t b, int64_t& quotient, int64_t& rest) {
  ORCH_CHECK(b != 0 && !(a == INT64_MIN && b == -1), Error::InvalidArgument);
  quotient = a / b;
  rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    --quotient;
    rest += b;
  }
  return Error::Ok;
}

/// Largest whole number that is not above a / b.
///
/// Source: Python's float.__floordiv__; for b = 0 ExecuTorch, whose result is
/// infinite with the sign of a.
double floor_divide(double a, double b) {
  if (a != a || b != b) return __builtin_nan("");
  if (b == 0) return __builtin_copysign(__builtin_inf(), a);
  if (a - a != 0) return __builtin_nan("");  // infinite
  const double rest = remainder(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return __builtin_copysign(0.0, a / b);
  // Rounding can have left a fraction.
  int64_t whole = 0;
  double fraction = 0;
  if (split(quotient, whole, fraction) == Error::Ok && fraction != 0) {
    if (fraction < 0) {
      --whole;
      fraction += 1;
    }
    quotient = static_cast<double>(whole) + (fraction > 0.5 ? 1 : 0);
  }
  return quotient;
}

}  // namespace

// executorch_prim::floordiv.int(SymInt a, SymInt b) -> SymInt
Error floordiv_int(const Args& args) {
  int64_t quotient = 0;
  int64_t rest = 0;
  ORCH_TRY(divide(args.integer(0), args.integer(1), quotient, rest));
  args.value(2).set_int(quotient);
  return Error::Ok;
}

// executorch_prim::floordiv.Scalar(Scalar a, Scalar b) -> Scalar
Error floordiv_Scalar(const Args& args) {
  return on_numbers(
      args,
      [](int64_t a, int64_t b, Value& out) {
        int64_t quotient = 0;
        int64_t rest = 0;
        ORCH_TRY(divide(a, b, quotient, rest));
        return give_int(out, quotient);
      },
      [](double a, double b, Value& out) {
        return give_double(out, floor_divide(a, b));
      });
}

// executorch_prim::mod.int(SymInt a, SymInt b) -> SymInt
// executorch_prim::mod.Scalar(SymInt a, SymInt b) -> SymInt
Error mod_int(const Args& args) {
  int64_t quotient = 0;
  int64_t rest = 0;
  const int64_t b = args.integer(1);
  // The quotient of -1 may not fit, the remainder does.
  if (b != -1) ORCH_TRY(divide(args.integer(0), b, quotient, rest));
  args.value(2).set_int(rest);
  return Error::Ok;
}

// executorch_prim::truediv.Scalar(Scalar a, Scalar b) -> float
Error truediv_Scalar(const Args& args) {
  const Scalar& a = args.scalar(0);
  const Scalar& b = args.scalar(1);
  ORCH_CHECK(!a.is_bool() && !b.is_bool(), Error::InvalidArgument);
  args.value(2).set_double(a.to_double() / b.to_double());
  return Error::Ok;
}

}  // namespace orch::prim_ops
