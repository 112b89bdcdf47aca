#include "orch_selected/op_mul.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/scalar.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

#define ORCH_MUL(x, y) "vmul.f32 " x ", " x ", " y "\n"
ORCH_LANES(mul_lanes, ORCH_MUL);
#define ORCH_SCALE(x, y) "vmul.f32 " x ", " x ", r2\n"
ORCH_LANES(scale_lanes, ORCH_SCALE);

template <typename T>
auto product_of(Type<T> type) {
  using C = Compute<T>;
  return in_lanes(
      type,
      [](T a, T b) {
        return static_cast<T>(static_cast<C>(a) * static_cast<C>(b));
      },
      mul_lanes);
}

/// PyTorch does not round the number to halves.
template <typename T>
auto multiple_of(Type<T> type, Compute<T> number) {
  return in_lanes(
      type,
      [number](T item) {
        return static_cast<T>(static_cast<Compute<T>>(item) * number);
      },
      scale_lanes, number);
}

}  // namespace

// aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error mul_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_mul_out;
  return binary<kDtypes.bits, (kReal | kBool | kComplex).bits>(
      args.tensor(0), args.tensor(1), args.tensor(2),
      [](auto type) { return product_of(type); });
}

// aten::mul.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error mul_Scalar_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Scalar& other = args.scalar(1);
  constexpr DtypeSet kDtypes = selected::aten_mul_Scalar_out;
  return unary_in<kDtypes.bits, (kReal | kBool).bits>(
      result_type(self.dtype, other), self, args.tensor(2), [&](auto type) {
        using T = typename decltype(type)::type;
        return multiple_of(type, static_cast<Compute<T>>(scalar_as<T>(other)));
      });
}

// Prepared: floats, of rows that lie side by side or not, or by a number.
void multiply(const PreparedCall& call) {
  map_prepared_pairs<false>(call, product_of(Type<float>{}));
}

void multiply_rows(const PreparedCall& call) {
  map_prepared_pairs<true>(call, product_of(Type<float>{}));
}

void multiply_number(const PreparedCall& prepared) {
  const auto& call = static_cast<const NumberCall&>(prepared);
  map_prepared(call, multiple_of(Type<float>{}, call.number));
}

}  // namespace orch::portable
