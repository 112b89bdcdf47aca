// What prim ops on numbers share.
//
// A value keeps the kind (Int, Double, Bool) that the program declares, because
// kernels were chosen by it: a result of another kind is refused.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/value.h"

namespace orch::prim_ops {

/// The result of an operator whose schema says Scalar. Errors: InvalidArgument.
inline Error give_int(Value& out, int64_t value) {
  ORCH_CHECK(out.tag() == Tag::Int, Error::InvalidArgument);
  out.set_int(value);
  return Error::Ok;
}
inline Error give_double(Value& out, double value) {
  ORCH_CHECK(out.tag() == Tag::Double, Error::InvalidArgument);
  out.set_double(value);
  return Error::Ok;
}

/// Calls `of_ints(a, b, out)` if arguments 0 and 1 are ints, or `of_doubles(a,
/// b, out)` if at least one is a double; the other one is converted. `out` is
/// argument 2. Errors: InvalidArgument for a bool, and those of the functions.
template <typename OfInts, typename OfDoubles>
Error on_numbers(const Args& args, OfInts of_ints, OfDoubles of_doubles) {
  const Scalar& a = args.scalar(0);
  const Scalar& b = args.scalar(1);
  ORCH_CHECK(!a.is_bool() && !b.is_bool(), Error::InvalidArgument);
  Value& out = args.value(2);
  if (a.is_floating() || b.is_floating()) {
    return of_doubles(a.to_double(), b.to_double(), out);
  }
  return of_ints(a.bits(), b.bits(), out);
}

/// `value` without its fraction, which `rest` gets, both exact. Errors:
/// InvalidArgument for NaN and where 64 bits do not hold it.
inline Error split(double value, int64_t& whole, double& rest) {
  ORCH_CHECK_DATA(value >= -0x1p63 && value < 0x1p63, Error::InvalidArgument);
  whole = static_cast<int64_t>(value);
  rest = value - static_cast<double>(whole);
  return Error::Ok;
}

}  // namespace orch::prim_ops
