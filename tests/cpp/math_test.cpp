#include "orch/math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "orch/lanes.h"

namespace orch::test {
namespace {

template <typename F>
struct Bits;
template <>
struct Bits<float> {
  using type = uint32_t;
};
template <>
struct Bits<double> {
  using type = uint64_t;
};

template <typename F>
typename Bits<F>::type bits_of(F value) {
  typename Bits<F>::type bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
template <typename F>
F float_of(typename Bits<F>::type bits) {
  F value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename F>
constexpr F kInf = std::numeric_limits<F>::infinity();
template <typename F>
constexpr F kNaN = std::numeric_limits<F>::quiet_NaN();

/// Error in units of the last place of the exact result, rounded to F.
template <typename F>
double ulps(F got, long double exact) {
  const F rounded = static_cast<F>(exact);
  if (std::isnan(rounded) || std::isnan(got)) {
    return std::isnan(rounded) && std::isnan(got) ? 0 : 1e9;
  }
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : 1e9;
  int exponent;
  std::frexp(rounded, &exponent);
  using Limits = std::numeric_limits<F>;
  const int last = std::max(exponent, Limits::min_exponent) - Limits::digits;
  return static_cast<double>(
      std::fabs(std::ldexp(static_cast<long double>(got) - exact, -last)));
}

template <typename F>
struct Worst {
  double error = 0;
  F at = 0;

  void see(F x, double found) {
    if (found > error) {
      error = found;
      at = x;
    }
  }
  void report(const char* name) const {
    if (std::getenv("ORCH_REPORT") == nullptr) return;
    std::printf("math::%s: %.4f ulp at %.17g\n", name, error,
                static_cast<double>(at));
  }
};

/// Calls fn with numbers of every exponent and sign, evenly in their bits, and
/// with random numbers in [-range, range].
template <typename F, typename Fn>
void for_numbers(int count, double range, Fn fn) {
  using B = typename Bits<F>::type;
  const B step = static_cast<B>(-1) / static_cast<B>(count) | 1;
  B bits = 0;
  for (int i = 0; i < count; ++i, bits += step) fn(float_of<F>(bits));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-range, range);
  for (int i = 0; i < count; ++i) fn(static_cast<F>(uniform(random)));
}

template <typename F>
void check_exp(int count, double range) {
  Worst<F> worst;
  for_numbers<F>(count, range, [&](F x) {
    worst.see(x, ulps(math::exp(x), std::exp(static_cast<long double>(x))));
  });
  worst.report(sizeof(F) == 4 ? "exp(float)" : "exp(double)");
  CHECK(worst.error < 1.0);
}

template <typename F>
void check_tanh(int count) {
  Worst<F> worst;
  const auto see = [&](F x) {
    worst.see(x, ulps(math::tanh(x), std::tanh(static_cast<long double>(x))));
  };
  for_numbers<F>(count, 1.0, see);
  for_numbers<F>(count, 20.0, see);
  worst.report(sizeof(F) == 4 ? "tanh(float)" : "tanh(double)");
  CHECK(worst.error < 1.5);
}

template <typename F>
void check_erf(int count) {
  Worst<F> worst;
  const auto see = [&](F x) {
    worst.see(x, ulps(math::erf(x), std::erf(static_cast<long double>(x))));
  };
  for_numbers<F>(count, 1.0, see);
  for_numbers<F>(count, 7.0, see);
  F x = 1;  // where one form becomes the other
  for (int i = 0; i < 1000; ++i) x = std::nextafter(x, F(0));
  for (int i = 0; i < 2000; ++i, x = std::nextafter(x, kInf<F>)) see(x);
  worst.report(sizeof(F) == 4 ? "erf(float)" : "erf(double)");
  CHECK(worst.error < 1.6);
}

template <typename F>
void check_trig(int count) {
  Worst<F> of_sin;
  Worst<F> of_cos;
  const auto see = [&](F x) {
    const long double exact = x;
    of_sin.see(x, ulps(math::sin(x), std::sin(exact)));
    of_cos.see(x, ulps(math::cos(x), std::cos(exact)));
  };
  for_numbers<F>(count, 10.0, see);  // the largest included
  for_numbers<F>(count, 1e6, see);
  // Near multiples of pi / 2, where little is left of them.
  for (int i = 1; i < count / 10; ++i) {
    see(static_cast<F>(i * 1.57079632679489661923L));
  }
  of_sin.report(sizeof(F) == 4 ? "sin(float)" : "sin(double)");
  of_cos.report(sizeof(F) == 4 ? "cos(float)" : "cos(double)");
  CHECK(of_sin.error < 1.6);
  CHECK(of_cos.error < 1.6);
}

template <typename F>
void check_sqrt(int count) {
  int wrong = 0;
  for_numbers<F>(count, 100.0, [&](F x) {
    const F got = math::sqrt(x);
    const F want = std::sqrt(x);  // correctly rounded on this machine
    if (std::isnan(want) ? !std::isnan(got) : bits_of(got) != bits_of(want)) {
      ++wrong;
    }
  });
  CHECK(wrong == 0);
}

/// A function of one argument and the C library's, in more precision.
template <typename F>
struct Function {
  const char* name;
  F (*fn)(F);
  long double (*exact)(long double);
  double bound;  // of errors, in units in the last place
};

#define ORCH_FUNCTION(name, bound)                                       \
  {                                                                      \
#name, math::name, [](long double x) { return std::name(x); }, bound \
  }
template <typename F>
const Function<F> kFunctions[] = {
    ORCH_FUNCTION(log, 0.9),   ORCH_FUNCTION(log1p, 0.9),
    ORCH_FUNCTION(log2, 0.9),  ORCH_FUNCTION(log10, 0.8),
    ORCH_FUNCTION(expm1, 1.1), ORCH_FUNCTION(sinh, 1.0),
    ORCH_FUNCTION(cosh, 1.0),  ORCH_FUNCTION(tan, 1.5),
    ORCH_FUNCTION(asin, 1.1),  ORCH_FUNCTION(acos, 1.1),
    ORCH_FUNCTION(atan, 0.8),  ORCH_FUNCTION(asinh, 0.9),
    ORCH_FUNCTION(acosh, 0.9), ORCH_FUNCTION(atanh, 0.9),
};
#undef ORCH_FUNCTION

template <typename F>
void check_functions(int count) {
  for (const Function<F>& of : kFunctions<F>) {
    Worst<F> worst;
    const auto see = [&](F x) { worst.see(x, ulps(of.fn(x), of.exact(x))); };
    for_numbers<F>(count, 1.5, see);
    for_numbers<F>(count, sizeof(F) == 4 ? 100 : 720, see);
    // Where forms change, results vanish, and domains end.
    for (const double x : {-1.0, -0.5, -0.29, 0.41, 0.4375, 0.5, 0.6875, 0.7071,
                           1.0, 1.1875, 1.4142, 2.0, 2.4375, 89.4, 710.4}) {
      F near = static_cast<F>(x);
      for (int i = 0; i < 100; ++i) near = std::nextafter(near, -kInf<F>);
      for (int i = 0; i < 200; ++i, near = std::nextafter(near, kInf<F>)) {
        see(near);
      }
    }
    worst.report(of.name);
    INFO(of.name, " at ", static_cast<double>(worst.at));
    CHECK(worst.error < of.bound);
  }
}

template <typename F>
void check_pow(int count) {
  Worst<F> worst;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const double range = sizeof(F) == 4 ? 100 : 740;
  const auto see = [&](F x, F y) {
    worst.see(x, ulps(math::pow(x, y), std::pow(static_cast<long double>(x),
                                                static_cast<long double>(y))));
  };
  for_numbers<F>(count, 30, [&](F x) {
    const F a = std::fabs(x);
    see(a, static_cast<F>(uniform(random) * range / std::log(a)));
    see(x, static_cast<F>(std::floor(uniform(random) * 20)));
    // Near 1, with large exponents.
    see(static_cast<F>(1 + uniform(random) * 1e-3),
        static_cast<F>(uniform(random) * range * 1000));
  });
  worst.report("pow");
  INFO("at ", static_cast<double>(worst.at));
  CHECK(worst.error < 0.9);
}

template <typename F>
void check_atan2(int count) {
  Worst<F> worst;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-4, 4);
  for_numbers<F>(count, 4, [&](F y) {
    const F x = static_cast<F>(uniform(random));
    worst.see(y,
              ulps(math::atan2(y, x), std::atan2(static_cast<long double>(y),
                                                 static_cast<long double>(x))));
  });
  worst.report("atan2");
  CHECK(worst.error < 1.5);
}

/// Whether both are NaN, or the same zero or infinity, or nearly the same.
template <typename F>
bool alike(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == 0 || b == 0 || std::isinf(a) || std::isinf(b)) {
    return bits_of(a) == bits_of(b);
  }
  return ulps(a, static_cast<long double>(b)) <= 2;
}

TEST_CASE_TEMPLATE("logarithms, powers and angles of numbers", F, float,
                   double) {
  check_functions<F>(20'000);
  check_pow<F>(20'000);
  check_atan2<F>(50'000);
}

TEST_CASE_TEMPLATE("logarithms, powers and angles of special values", F, float,
                   double) {
  using Limits = std::numeric_limits<F>;
  const F kSpecial[] = {F(0),
                        F(0.5),
                        F(1),
                        F(1.5),
                        F(2),
                        F(3),
                        F(4),
                        F(5e5),
                        F(0x1p24F),
                        F(16777215.0),
                        Limits::max(),
                        Limits::min(),
                        kInf<F>,
                        kNaN<F>,
                        F(0.99999994F),
                        Limits::denorm_min(),
                        1 + Limits::epsilon()};
  for (const F size : kSpecial) {
    for (const F x : {size, -size}) {
      for (const Function<F>& of : kFunctions<F>) {
        INFO(of.name, " of ", static_cast<double>(x));
        CHECK(alike(of.fn(x), static_cast<F>(of.exact(x))));
      }
      for (const F other : kSpecial) {
        for (const F y : {other, -other}) {
          INFO(static_cast<double>(x), ", ", static_cast<double>(y));
          CHECK(alike(math::pow(x, y), std::pow(x, y)));
          CHECK(alike(math::atan2(x, y), std::atan2(x, y)));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("powers and logarithms that are numbers are exact", F, float,
                   double) {
  for (int base = 2; base <= 12; ++base) {
    F product = 1;
    for (int i = 0; product < 1 / std::numeric_limits<F>::epsilon(); ++i) {
      CHECK(math::pow(F(base), F(i)) == product);
      CHECK(math::pow(F(-base), F(i)) == (i % 2 == 0 ? product : -product));
      product *= F(base);
    }
  }
  for (int i = std::numeric_limits<F>::min_exponent; i < 100; ++i) {
    CHECK(math::pow(F(2), F(i)) == std::ldexp(F(1), i));
    CHECK(math::log2(std::ldexp(F(1), i)) == F(i));
  }
  for (int i = 0; i <= 10; ++i) CHECK(math::log10(math::pow(F(10), F(i))) == i);
}

TEST_CASE("exp is within one unit of the last place") {
  check_exp<float>(400'000, 104);
  check_exp<double>(200'000, 746);
}

TEST_CASE("tanh is within one and a half units of the last place") {
  check_tanh<float>(200'000);
  check_tanh<double>(100'000);
}

TEST_CASE("erf is within 1.6 units of the last place") {
  check_erf<float>(400'000);
  check_erf<double>(200'000);
}

TEST_CASE("sin and cos are within 1.6 units of the last place") {
  check_trig<float>(100'000);
  check_trig<double>(50'000);
  // The doubles nearest to a multiple of pi / 2: 60 bits cancel out.
  const double near = 6381956970095103.0 * 0x1p797;
  CHECK(math::cos(near) == doctest::Approx(-4.68716592425462761e-19));
  CHECK(std::fabs(math::sin(near)) == 1);
}

TEST_CASE("sqrt is correctly rounded") {
  check_sqrt<float>(200'000);
  check_sqrt<double>(100'000);
}

TEST_CASE_TEMPLATE("special values", F, float, double) {
  CHECK(std::isnan(math::exp(kNaN<F>)));
  CHECK(math::exp(kInf<F>) == kInf<F>);
  CHECK(math::exp(-kInf<F>) == 0);
  CHECK(math::exp(F(0)) == 1);
  CHECK(math::exp(F(-0.0)) == 1);
  CHECK(std::isnan(math::tanh(kNaN<F>)));
  CHECK(math::tanh(kInf<F>) == 1);
  CHECK(math::tanh(-kInf<F>) == -1);
  CHECK(bits_of(math::tanh(F(0))) == bits_of(F(0)));
  CHECK(bits_of(math::tanh(F(-0.0))) == bits_of(F(-0.0)));
  CHECK(std::isnan(math::erf(kNaN<F>)));
  CHECK(math::erf(kInf<F>) == 1);
  CHECK(math::erf(-kInf<F>) == -1);
  CHECK(bits_of(math::erf(F(0))) == bits_of(F(0)));
  CHECK(bits_of(math::erf(F(-0.0))) == bits_of(F(-0.0)));
  for (const F x : {kNaN<F>, kInf<F>, -kInf<F>}) {
    CHECK(std::isnan(math::sin(x)));
    CHECK(std::isnan(math::cos(x)));
  }
  CHECK(bits_of(math::sin(F(0))) == bits_of(F(0)));
  CHECK(bits_of(math::sin(F(-0.0))) == bits_of(F(-0.0)));
  CHECK(math::cos(F(-0.0)) == 1);
  const F tiny = std::numeric_limits<F>::denorm_min();
  CHECK(math::sin(-tiny) == -tiny);
  CHECK(math::tanh(tiny) == tiny);
  CHECK(math::tanh(-tiny) == -tiny);
  CHECK(math::exp(tiny) == 1);
  CHECK(std::isnan(math::sqrt(kNaN<F>)));
  CHECK(std::isnan(math::sqrt(F(-1))));
  CHECK(std::isnan(math::sqrt(-tiny)));
  CHECK(std::isnan(math::sqrt(-kInf<F>)));
  CHECK(math::sqrt(kInf<F>) == kInf<F>);
  CHECK(bits_of(math::sqrt(F(-0.0))) == bits_of(F(-0.0)));
  CHECK(math::sqrt(tiny) == std::sqrt(tiny));
  CHECK(math::sqrt(std::numeric_limits<F>::max()) ==
        std::sqrt(std::numeric_limits<F>::max()));
}

template <typename F>
void check_threshold(F limit) {
  // 2000 numbers on both sides of a limit where exp changes its behaviour.
  F x = limit;
  for (int i = 0; i < 1000; ++i) x = std::nextafter(x, -kInf<F>);
  Worst<F> worst;
  for (int i = 0; i < 2000; ++i, x = std::nextafter(x, kInf<F>)) {
    worst.see(x, ulps(math::exp(x), std::exp(static_cast<long double>(x))));
  }
  CHECK(worst.error < 1.0);
}

TEST_CASE("exp around overflow, subnormal numbers and underflow") {
  check_threshold(88.7228394F);
  check_threshold(-87.3365479F);
  check_threshold(-103.972084F);
  check_threshold(709.782712893384);
  check_threshold(-708.3964185322641);
  check_threshold(-745.1332191019412);
}

/// FNV-1a over the bits of results: every target must give this number. (For
/// double, libgcc 12 does not on cores without a double unit: its subtraction
/// is off by one step for some numbers whose exponents differ by 33.)
template <typename F>
uint64_t digest() {
  uint64_t hash = 0xCBF29CE484222325U;
  const auto mix = [&](F value) {
    for (typename Bits<F>::type b = bits_of(value), i = 0; i < sizeof(F);
         ++i, b >>= 8) {
      hash = (hash ^ (b & 0xFFU)) * 0x100000001B3U;
    }
  };
  for (int i = 0; i < 4000; ++i) {
    const F x = static_cast<F>(i - 2000) / 19;
    mix(math::exp(x));
    mix(math::tanh(x / 8));
    mix(math::sqrt(static_cast<F>(i) * F(0.37)));
  }
  return hash;
}

template <typename F>
uint64_t trig_digest() {
  uint64_t hash = 0xCBF29CE484222325U;
  F x = std::numeric_limits<F>::min();
  for (int i = 0; i < 4000; ++i) {
    for (const F value : {math::sin(x), math::cos(x)}) {
      typename Bits<F>::type b = bits_of(value);
      for (size_t k = 0; k < sizeof(F); ++k, b >>= 8) {
        hash = (hash ^ (b & 0xFFU)) * 0x100000001B3U;
      }
    }
    // Through all exponents.
    x *= sizeof(F) == 4 ? F(1.04) : F(1.42);
    if (!(x < std::numeric_limits<F>::max() / 2)) x = F(0.1);
  }
  return hash;
}

template <typename F>
uint64_t erf_digest() {
  uint64_t hash = 0xCBF29CE484222325U;
  for (int i = 0; i < 4000; ++i) {
    const F value = math::erf(static_cast<F>(i - 2000) / 331);
    typename Bits<F>::type b = bits_of(value);
    for (size_t k = 0; k < sizeof(F); ++k, b >>= 8) {
      hash = (hash ^ (b & 0xFFU)) * 0x100000001B3U;
    }
  }
  return hash;
}

template <typename F>
uint64_t function_digest() {
  uint64_t hash = 0xCBF29CE484222325U;
  const auto mix = [&](F value) {
    if (std::isnan(value)) return;  // its bits depend on the processor
    typename Bits<F>::type b = bits_of(value);
    for (size_t k = 0; k < sizeof(F); ++k, b >>= 8) {
      hash = (hash ^ (b & 0xFFU)) * 0x100000001B3U;
    }
  };
  for (int i = 0; i < 1000; ++i) {
    const F x = static_cast<F>(i - 500) / 331;
    for (const Function<F>& of : kFunctions<F>) mix(of.fn(x));
    mix(math::pow(static_cast<F>(i) / 7, x * 9));
    mix(math::atan2(x, static_cast<F>(i % 37 - 20)));
  }
  return hash;
}

TEST_CASE("results are the same bits everywhere") {
  CHECK(function_digest<float>() == 3185261992904442671U);
  CHECK(function_digest<double>() == 15533517071624413723U);
  CHECK(erf_digest<float>() == 5915494583541150104U);
  CHECK(erf_digest<double>() == 18082216777982195164U);
  CHECK(trig_digest<float>() == 12175560351211752018U);
  CHECK(trig_digest<double>() == 9555566119296203756U);
  CHECK(digest<float>() == 16283983977610838358U);
  CHECK(digest<double>() == 12597779474737001184U);
}

#if ORCH_VECTORS
/// Four items are those of one, to the bit, or NaN; `rare` counts those that
/// are NaN and should not be.
template <typename One, typename Four>
void compare_lanes(One one, Four four, const float* x, const float* y,
                   int& different, int& rare) {
  float found[4];
  store_lanes(found, four(load_lanes(x), load_lanes(y)));
  for (int i = 0; i < 4; ++i) {
    const float wanted = one(x[i], y[i]);
    if (std::isnan(found[i])) {
      rare += std::isnan(wanted) ? 0 : 1;
    } else {
      different += bits_of(found[i]) == bits_of(wanted) ? 0 : 1;
    }
  }
}

#define ORCH_LANES_ARE_ITEMS(call)                                          \
  do {                                                                      \
    int different = 0;                                                      \
    int rare = 0;                                                           \
    for (uint32_t i = 0; i < 0xFFFFFFFFU - 4 * kStep; i += 4 * kStep) {     \
      float x[4];                                                           \
      float y[4];                                                           \
      for (uint32_t j = 0; j < 4; ++j) {                                    \
        x[j] = float_of<float>(i + j * kStep);                              \
        y[j] = static_cast<float>(i % 1009) / 64 - 8;                       \
      }                                                                     \
      compare_lanes([](float a, float b) { return call; },                  \
                    [](Lanes a, Lanes b) { return call; }, x, y, different, \
                    rare);                                                  \
    }                                                                       \
    INFO(#call);                                                            \
    CHECK(different == 0);                                                  \
    CHECK(rare <= most_rare);                                               \
  } while (false)

TEST_CASE("vectors have the bits of items") {
  constexpr uint32_t kStep = 9973;
  int most_rare = 0;
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::exp(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::tanh(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::erf(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::expm1(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::sqrt(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::asin(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::acos(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::atan(a)));
  most_rare = 1;  // minus infinity
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::log(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::log1p(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::log2(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::log10(a)));
  // Arguments from 6400 on, and where results are 0 or infinite.
  most_rare = 200000;
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::sin(a)));
  ORCH_LANES_ARE_ITEMS((static_cast<void>(b), math::cos(a)));
  ORCH_LANES_ARE_ITEMS(math::pow(a, b));
}
#endif

}  // namespace
}  // namespace orch::test
