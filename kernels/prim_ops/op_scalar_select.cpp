// One of two numbers, and what decides on it.
#include "orch/kernel.h"
#include "prim_ops/numbers.h"

namespace orch::prim_ops {

// executorch_prim::sym_max.Scalar(SymInt a, SymInt b) -> SymInt
Error sym_max_Scalar(const Args& args) {
  const int64_t a = args.integer(0);
  const int64_t b = args.integer(1);
  args.value(2).set_int(a < b ? b : a);
  return Error::Ok;
}

// executorch_prim::sym_min.Scalar(SymInt a, SymInt b) -> SymInt
Error sym_min_Scalar(const Args& args) {
  const int64_t a = args.integer(0);
  const int64_t b = args.integer(1);
  args.value(2).set_int(b < a ? b : a);
  return Error::Ok;
}

// executorch_prim::sym_not.Scalar(bool a) -> bool
Error sym_not_Scalar(const Args& args) {
  args.value(1).set_bool(!args.boolean(0));
  return Error::Ok;
}

// executorch_prim::sym_ite.Scalar(bool b, Scalar t, Scalar f) -> Scalar
// Only the one that is chosen must be of the result's kind.
Error sym_ite_Scalar(const Args& args) {
  const Value& chosen = args.value(args.boolean(0) ? 1 : 2);
  ORCH_CHECK(chosen.tag() == args.value(3).tag(), Error::InvalidArgument);
  args.value(3) = chosen;
  return Error::Ok;
}

}  // namespace orch::prim_ops
