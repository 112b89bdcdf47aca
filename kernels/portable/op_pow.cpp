#include "orch_selected/op_pow.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/binary.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

/// base^exponent, modulo 2 to the power of its bits.
template <typename C>
__attribute__((noinline)) C whole_power(C base, uint64_t exponent) {
  C product = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1U) != 0) product *= base;
    base *= base;
  }
  return product;
}

template <typename T>
T power(T base, T exponent) {
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(math::pow(number_of(base), number_of(exponent)));
  } else {
    if (is_negative(exponent)) {
      // The inverse, without its fraction.
      const bool odd = (static_cast<unsigned>(exponent) & 1U) != 0;
      if (base == static_cast<T>(-1)) return odd ? base : T(1);
      return base == T(1) ? base : T(0);
    }
    return static_cast<T>(whole_power(static_cast<Compute<T>>(base),
                                      static_cast<uint64_t>(exponent)));
  }
}

#if ORCH_VECTORS
[[maybe_unused]] inline Lanes power(Lanes base, Lanes exponent) {
  return math::pow(base, exponent);
}

/// Powers of a number, whose logarithm vectors take once.
struct PowersOf {
  float base;
  math::LogLanes log;

  float operator()(float y) const { return power(base, y); }
  Lanes operator()(Lanes y) const { return math::pow(log, y); }
};

[[maybe_unused]] inline OfLanes<PowersOf> powers_of(float base) {
  const FlushFlags flags;
  return {{base, math::log_in_parts(base)}};
}
#endif

template <typename T>
auto powers_of(T base) {
  return [base](T y) { return power(base, y); };
}

#if ORCH_HOST_VECTORS
/// Powers of pairs: logarithms of many before their powers, since each waits
/// for its own steps, and a processor has more of a short one under way.
struct PairPowers {
  float operator()(float x, float y) const { return power(x, y); }

  /// to[i] = x[i]^y[i] for items that lie side by side.
  __attribute__((noinline)) void row(const float* x, float* to, int32_t count,
                                     const float* y) const {
    constexpr int32_t kMost = 64;
    math::LogLanes logs[kMost / 4];
    while (count >= 4) {
      const int32_t now = count < kMost ? count / 4 * 4 : kMost;
      for (int32_t i = 0; i < now; i += 4) {
        logs[i / 4] = math::log_in_parts(load_lanes(x + i));
      }
      for (int32_t i = 0; i < now; i += 4) {
        Lanes z = math::pow(logs[i / 4], load_lanes(y + i));
        if (is_rare(z)) {
          few(x + i, to + i, 4, y + i);
        } else {
          store_lanes(to + i, z);
        }
      }
      count -= now;
      x += now;
      to += now;
      y += now;
    }
    few(x, to, count, y);
  }

 private:
  static void few(const float* x, float* to, int32_t count, const float* y) {
    for (; count > 0; --count) *to++ = power(*x++, *y++);
  }
};

[[maybe_unused]] inline PairPowers pair_powers(Type<float>) { return {}; }
#endif

template <typename T>
auto pair_powers(Type<T> type) {
  return of_lanes(type, [](auto x, auto y) { return power(x, y); });
}

/// Exponents for which PyTorch does not compute a power of floats.
enum class Form : uint8_t {
  kAny,
  kOne,
  kSame,
  kSquare,
  kCube,
  kRoot,
  kInverse,
  kInverseSquare,
  kInverseRoot,
};

template <typename T>
Form form_of(T exponent) {
  const auto y = number_of(exponent);
  if (y == 0) return Form::kOne;
  if (y == 1) return Form::kSame;
  if (y == 2) return Form::kSquare;
  if (y == 3) return Form::kCube;
  if (y == -1) return Form::kInverse;
  if (y == -2) return Form::kInverseSquare;
  // The power differs from the root for -0 and for minus infinity.
  if (kIsSame<T, Half>) return Form::kAny;
  if (y == Compute<T>(0.5)) return Form::kRoot;
  return y == Compute<T>(-0.5) ? Form::kInverseRoot : Form::kAny;
}

/// T: the dtype; V: it, or Lanes.
template <typename T, typename V>
V float_power(V base, T exponent, Form form) {
  const auto x = number_of(base);
  // PyTorch rounds in between, except for Half.
  const auto square = [x] {
    return kIsSame<T, Half> ? x * x : number_of(static_cast<V>(x * x));
  };
  switch (form) {
    case Form::kOne:
      return static_cast<V>(Compute<T>(1));
    case Form::kSame:
      return base;
    case Form::kSquare:
      return static_cast<V>(x * x);
    case Form::kCube:
      return static_cast<V>(square() * x);
    case Form::kRoot:
      return static_cast<V>(math::sqrt(x));
    case Form::kInverse:
      return static_cast<V>(1 / x);
    case Form::kInverseSquare:
      return static_cast<V>(1 / square());
    case Form::kInverseRoot:
      return static_cast<V>(1 / math::sqrt(x));
    case Form::kAny:
      break;
  }
  return power(base, static_cast<V>(exponent));
}

}  // namespace
}  // namespace orch::portable

#if ORCH_HOST_VECTORS
template <>
[[maybe_unused]] inline constexpr bool
    orch::kInLanes<orch::portable::PairPowers> = true;
#endif

namespace orch::portable {

// aten::pow.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out)
//   -> Tensor(a!)
Error pow_Scalar_out(const Args& args) {
  const Scalar& self = args.scalar(0);
  const Tensor& exponent = args.tensor(1);

  constexpr DtypeSet kDtypes = selected::aten_pow_Scalar_out;
  return unary_in<kDtypes.bits, kReal.bits>(
      result_type(exponent.dtype, self), exponent, args.tensor(2),
      [&self](auto type) {
        return powers_of(scalar_to<typename decltype(type)::type>(self));
      });
}

// aten::pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out)
//   -> Tensor(a!)
Error pow_Tensor_Scalar_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const Scalar& exponent = args.scalar(1);

  const ScalarType common = result_type(self.dtype, exponent);
  ORCH_CHECK(kFloating.has(common) || exponent.bits() >= 0,
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_pow_Tensor_Scalar_out;
  return unary_in<kDtypes.bits, kReal.bits>(
      common, self, args.tensor(2), [&exponent](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (kIsFloating<T>) {
          const T y = scalar_to<T>(exponent);
          const Form form = form_of(y);
          return of_lanes(
              type, [y, form](auto x) { return float_power<T>(x, y, form); });
        } else {
          const uint64_t y = static_cast<uint64_t>(exponent.bits());
          return [y](T x) {
            return static_cast<T>(whole_power(static_cast<Compute<T>>(x), y));
          };
        }
      });
}

// aten::pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out)
//   -> Tensor(a!)
Error pow_Tensor_Tensor_out(const Args& args) {
  constexpr DtypeSet kDtypes = selected::aten_pow_Tensor_Tensor_out;
  return binary<kDtypes.bits, kReal.bits>(
      args.tensor(0), args.tensor(1), args.tensor(2),
      [](auto type) { return pair_powers(type); });
}

}  // namespace orch::portable
