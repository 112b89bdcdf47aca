#include "orch_selected/op_div.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/divide.h"
#include "util/unary.h"
#include "util/word.h"

namespace orch::portable {
namespace {

/// Integers are divided as floats.
template <uint32_t kBits>
Error divide(const Tensor& self, const Tensor& other, Tensor& out) {
  return binary_floating<kBits>(self, other, out,
                                [](auto a, auto b) { return a / b; });
}

/// Integers are divided as floats. PyTorch does not round the number to halves.
template <uint32_t kBits>
Error divide_by_number(const Tensor& self, const Scalar& other, Tensor& out) {
  ScalarType common = result_type(self.dtype, other);
  if (!kFloating.has(common)) common = ScalarType::Float;
  return unary_in<kBits, kFloating.bits>(common, self, out, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto b = scalar_as<T>(other);
    return [b](T a) { return static_cast<T>(number_of(a) / b); };
  });
}

}  // namespace

// aten::div.Scalar_mode_out(Tensor self, Scalar other, *, str? rounding_mode,
//   Tensor(a!) out) -> Tensor(a!)
Error div_Scalar_mode_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Scalar& other = args.scalar(1);
  Tensor& out = args.tensor(3);

  constexpr DtypeSet kDtypes = selected::aten_div_Scalar_mode_out;
  if (!args.has(2)) return divide_by_number<kDtypes.bits>(self, other, out);
  const List& mode = args.value(2).list();
  const bool floor = is_word(mode, "floor");
  ORCH_CHECK(floor || is_word(mode, "trunc"), Error::InvalidArgument);
  const ScalarType common = result_type(self.dtype, other);
  ORCH_CHECK(!is_zero_integer(other, common) || self.numel() == 0,
             Error::InvalidArgument);
  return unary_in<kDtypes.bits, kReal.bits>(common, self, out, [&](auto type) {
    using T = typename decltype(type)::type;
    using N = decltype(number_of(T()));
    const N b = static_cast<N>(scalar_as<T>(other));
    return [b, floor](T item) {
      const N a = number_of(item);
      return static_cast<T>(floor ? divide_floor(a, b) : divide_trunc(a, b));
    };
  });
}

// aten::div.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)
//   -> Tensor(a!)
Error div_Scalar_out(const Args& args) {
  return divide_by_number<selected::aten_div_Scalar_out.bits>(
      args.tensor(0), args.scalar(1), args.tensor(2));
}

// aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error div_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(2);
  constexpr DtypeSet kDtypes = selected::aten_div_out;
  constexpr uint32_t kComplexes = (kDtypes & kComplex).bits;
  ORCH_CHECK(kDtypes.has(self.dtype) && kDtypes.has(other.dtype) &&
                 kDtypes.has(out.dtype),
             Error::DtypeNotSelected);
  if constexpr (kComplexes != 0) {
    if (kComplex.has(out.dtype)) {
      return binary<kComplexes, kComplexes>(self, other, out, [](auto type) {
        using T = typename decltype(type)::type;
        using C = Compute<T>;
        return [](T a, T b) {
          return static_cast<T>(static_cast<C>(a) / static_cast<C>(b));
        };
      });
    }
  }
  return divide<kDtypes.bits>(self, other, out);
}

// Prepared: floats, or floats by a number.
void divide(const PreparedCall& call) {
  map_prepared_pairs<false>(call, [](float a, float b) { return a / b; });
}

void divide_number(const PreparedCall& prepared) {
  const auto& call = static_cast<const NumberCall&>(prepared);
  map_prepared(call, [b = call.number](float a) { return a / b; });
}

// aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode,
//   Tensor(a!) out) -> Tensor(a!)
Error div_out_mode(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Tensor& other = args.tensor(1);
  Tensor& out = args.tensor(3);

  constexpr DtypeSet kDtypes = selected::aten_div_out_mode;
  if (!args.has(2)) return divide<kDtypes.bits>(self, other, out);
  const List& mode = args.value(2).list();
  const bool floor = is_word(mode, "floor");
  ORCH_CHECK(floor || is_word(mode, "trunc"), Error::InvalidArgument);
  ScalarType common;
  ORCH_TRY(prepare_binary<kDtypes.bits>(self, other, out, common));
  ORCH_TRY_DATA(check_divisors<kDtypes.bits>(common, self, other));
  return divide_items<kDtypes.bits>(
      common, self, other, out, [floor](auto a, auto b) {
        return floor ? divide_floor(a, b) : divide_trunc(a, b);
      });
}

}  // namespace orch::portable
