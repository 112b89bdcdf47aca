// Sums, differences and products of numbers. An int that does not fit 64 bits
// is refused, where Python would go on with a longer one.
#include "orch/kernel.h"
#include "prim_ops/numbers.h"

namespace orch::prim_ops {
namespace {

Error checked(bool overflow, int64_t value, Value& out) {
  ORCH_CHECK(!overflow, Error::InvalidArgument);
  return give_int(out, value);
}

/// Whether a * b does not fit 64 bits; the builtin for products is a function
/// of libraries that not every toolchain has.
bool multiply(int64_t a, int64_t b, int64_t& product) {
  const uint64_t wrapped = static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
  product = static_cast<int64_t>(wrapped);
  // Both fit 32 bits: so does their product 64.
  if (a == static_cast<int32_t>(a) && b == static_cast<int32_t>(b)) {
    return false;
  }
  if (a == 0) return false;
  if (a == -1) return b == INT64_MIN;
  return product / a != b;
}

}  // namespace

// executorch_prim::add.Scalar(Scalar a, Scalar b) -> Scalar
Error add_Scalar(const Args& args) {
  return on_numbers(
      args,
      [](int64_t a, int64_t b, Value& out) {
        int64_t sum = 0;
        const bool overflow = __builtin_add_overflow(a, b, &sum);
        return checked(overflow, sum, out);
      },
      [](double a, double b, Value& out) { return give_double(out, a + b); });
}

// executorch_prim::sub.Scalar(Scalar a, Scalar b) -> Scalar
Error sub_Scalar(const Args& args) {
  return on_numbers(
      args,
      [](int64_t a, int64_t b, Value& out) {
        int64_t difference = 0;
        const bool overflow = __builtin_sub_overflow(a, b, &difference);
        return checked(overflow, difference, out);
      },
      [](double a, double b, Value& out) { return give_double(out, a - b); });
}

// executorch_prim::mul.Scalar(Scalar a, Scalar b) -> Scalar
Error mul_Scalar(const Args& args) {
  return on_numbers(
      args,
      [](int64_t a, int64_t b, Value& out) {
        int64_t product = 0;
        const bool overflow = multiply(a, b, product);
        return checked(overflow, product, out);
      },
      [](double a, double b, Value& out) { return give_double(out, a * b); });
}

// executorch_prim::neg.Scalar(Scalar a) -> Scalar
Error neg_Scalar(const Args& args) {
  const Scalar& a = args.scalar(0);
  Value& out = args.value(1);
  ORCH_CHECK(!a.is_bool(), Error::InvalidArgument);
  if (a.is_floating()) return give_double(out, -a.to_double());
  ORCH_CHECK(a.bits() != INT64_MIN, Error::InvalidArgument);
  return give_int(out, -a.bits());
}

}  // namespace orch::prim_ops
