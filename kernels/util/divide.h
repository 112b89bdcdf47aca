// Division to whole numbers.
#pragma once

#include "util/binary.h"
#include "util/remainder.h"
#include "util/round.h"

namespace orch {

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
    return static_cast<T>(whole<Rounding::ToZero>(number_of(a) / number_of(b)));
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
  const F below = whole<Rounding::Down>(quotient);
  return quotient - below > F(0.5) ? below + 1 : below;
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

/// out = fn(self, other), in the dtype that both promote to.
///
/// Trusts that prepare_binary and check_divisors were successful. Errors:
/// DtypeNotSelected.
template <uint32_t kBits, typename Fn>
Error divide_items(ScalarType common, const Tensor& self, const Tensor& other,
                   Tensor& out, Fn fn) {
  return binary<kBits, kReal.bits>(common, self, other, out, [fn](auto type) {
    using T = typename decltype(type)::type;
    return [fn](T a, T b) {
      if constexpr (!kIsFloating<T>) {
        // Again: where memories overlap, what was written may be a divisor.
        if (b == T(0)) return T(0);
      }
      return fn(a, b);
    };
  });
}

}  // namespace orch
