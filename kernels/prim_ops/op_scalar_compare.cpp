// Comparisons of numbers: of two ints, doubles or one of each, by their exact
// values as in Python, and of two bools.
#include "orch/kernel.h"
#include "prim_ops/numbers.h"

namespace orch::prim_ops {
namespace {

/// How a relates to b. With NaN none of these holds.
enum Order : unsigned { kUnordered = 0, kLess = 1, kEqual = 2, kGreater = 4 };

template <typename T>
Order order_of(T a, T b) {
  if (a < b) return kLess;
  if (a > b) return kGreater;
  return a == b ? kEqual : kUnordered;
}

/// An int beside a double, neither of them rounded.
Order order_of(int64_t a, double b) {
  int64_t whole = 0;
  double rest = 0;
  // NaN, or larger than any int.
  if (split(b, whole, rest) != Error::Ok) return order_of(0.0, b);
  if (a != whole) return order_of(a, whole);
  return order_of(0.0, rest);
}

/// Writes whether a relates to b in one of the ways in `wanted`.
__attribute__((noinline)) Error compare(const Args& args, unsigned wanted) {
  const Scalar& a = args.scalar(0);
  const Scalar& b = args.scalar(1);
  ORCH_CHECK(a.is_bool() == b.is_bool(), Error::InvalidArgument);
  unsigned order = kUnordered;
  if (a.is_floating() && b.is_floating()) {
    order = order_of(a.to_double(), b.to_double());
  } else if (b.is_floating()) {
    order = order_of(a.bits(), b.to_double());
  } else if (a.is_floating()) {
    order = order_of(b.bits(), a.to_double());
    if (order == kLess || order == kGreater) order ^= kLess | kGreater;
  } else {
    order = order_of(a.bits(), b.bits());
  }
  args.value(2).set_bool((order & wanted) != 0);
  return Error::Ok;
}

}  // namespace

// executorch_prim::eq.Scalar(Scalar a, Scalar b) -> bool
Error eq_Scalar(const Args& args) { return compare(args, kEqual); }

// executorch_prim::gt.Scalar(Scalar a, Scalar b) -> bool
Error gt_Scalar(const Args& args) { return compare(args, kGreater); }

// executorch_prim::lt.Scalar(Scalar a, Scalar b) -> bool
Error lt_Scalar(const Args& args) { return compare(args, kLess); }

// executorch_prim::ge.Scalar(Scalar a, Scalar b) -> bool
Error ge_Scalar(const Args& args) { return compare(args, kGreater | kEqual); }

// executorch_prim::le.Scalar(Scalar a, Scalar b) -> bool
Error le_Scalar(const Args& args) { return compare(args, kLess | kEqual); }

}  // namespace orch::prim_ops
