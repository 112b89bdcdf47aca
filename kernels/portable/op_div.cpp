#include "orch_selected/op_div.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/remainder.h"
#include "util/word.h"

namespace orch::portable {
namespace {

/// Integers are divided as floats.
template <uint32_t kBits>
Error divide(const Tensor& self, const Tensor& other, Tensor& out) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr DtypeSet kWhole = kDtypes & (kIntegral | kBool);
  constexpr DtypeSet kCommon =
      (with_promoted(kDtypes) & kFloating) |
      (kWhole.bits != 0 ? dtype_set(ScalarType::Float) : DtypeSet{});
  ORCH_CHECK(kFloating.has(out.dtype), Error::InvalidArgument);
  ScalarType common = self.dtype;
  if constexpr (!kDtypes.single()) {
    common = result_type(self, other);
    if (!kFloating.has(common)) common = ScalarType::Float;
  }
  ORCH_TRY(resize_broadcast(out, self, other));
  return map_in<kBits, kBits, usable(kCommon, kDtypes).bits>(
      common, self, other, out, [](auto type) {
        using T = typename decltype(type)::type;
        return [](T a, T b) {
          return static_cast<T>(number_of(a) / number_of(b));
        };
      });
}

/// Whether an item of `tensor` is 0 as T, an integer.
template <typename T, uint32_t kBits>
bool has_zero(const Tensor& tensor) {
  for (int32_t i = tensor.numel(); i-- > 0;) {
    if (load_as<T, kBits>(tensor.dtype, tensor.memory, i) == 0) return true;
  }
  return false;
}

/// Errors: InvalidArgument, if an integer would be divided by 0.
template <uint32_t kBits>
Error check_divisors(ScalarType common, const Tensor& self,
                     const Tensor& other) {
  constexpr DtypeSet kWhole = with_promoted(DtypeSet{kBits}) & kIntegral;
  if (!kWhole.has(common) || self.numel() == 0) return Error::Ok;
  return switch_dtype<kWhole.bits>(common, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr uint32_t kFrom = DtypeSet{kBits & (kIntegral | kBool).bits}.bits;
    ORCH_CHECK(DtypeSet{kFrom}.has(other.dtype), Error::DtypeNotSelected);
    const bool zero = has_zero<T, kFrom>(other);
    return zero ? Error::InvalidArgument : Error::Ok;
  });
}

template <typename T>
T divide_trunc(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(float_trunc(number_of(a) / number_of(b)));
  } else {
    if constexpr (lowest<T>() != T(0)) {
      // The negative of the lowest integer is itself.
      using C = Compute<T>;
      if (b == T(-1)) return static_cast<T>(C(0) - static_cast<C>(a));
    }
    return static_cast<T>(a / b);
  }
}

/// Source: Python's float.__floordiv__, as PyTorch has it.
template <typename F>
F divide_floor_float(F a, F b) {
  if (b == 0) return a / b;
  const F rest = float_mod(a, b);
  F quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return a / b * 0;  // with the sign of a / b
  F whole = float_trunc(quotient);
  if (quotient < whole) whole -= 1;
  return quotient - whole > F(0.5) ? whole + 1 : whole;
}

template <typename T>
T divide_floor(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(divide_floor_float(number_of(a), number_of(b)));
  } else {
    const T quotient = divide_trunc(a, b);
    const bool below = is_negative(a) != is_negative(b);
    return below && truncated_mod(a, b) != 0 ? static_cast<T>(quotient - 1)
                                             : quotient;
  }
}

}  // namespace

// aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
Error div_out(const Args& args) {
  return divide<selected::aten_div_out.bits>(args.tensor(0), args.tensor(1),
                                             args.tensor(2));
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
  ORCH_TRY(check_divisors<kDtypes.bits>(common, self, other));
  return binary<kDtypes.bits, kReal.bits>(
      common, self, other, out, [floor](auto type) {
        using T = typename decltype(type)::type;
        return [floor](T a, T b) {
          if constexpr (!kIsFloating<T>) {
            // Again: where memories overlap, what was written may be a divisor.
            if (b == T(0)) return T(0);
          }
          return floor ? divide_floor(a, b) : divide_trunc(a, b);
        };
      });
}

}  // namespace orch::portable
