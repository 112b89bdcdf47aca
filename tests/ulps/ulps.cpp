// Largest errors of runtime/include/orch/math.h, and of kernels that compute
// with it, in units in the last place.
//
//     ulps STEP [FUNCTION...]
//
// Every STEP-th float for functions of one argument, against the C library's
// double; random numbers for those of two, and for double against long double.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "orch/kernel.h"
#include "orch/math.h"
#include "orch/tensor.h"

namespace orch::portable {
Error gelu_out(const Args& args);
Error rsqrt_out(const Args& args);
Error sigmoid_out(const Args& args);
}  // namespace orch::portable

namespace {

template <typename F>
struct Wide {
  using Bits = uint32_t;
  using type = double;
};
template <>
struct Wide<double> {
  using Bits = uint64_t;
  using type = long double;
};

template <typename F>
F float_of(typename Wide<F>::Bits bits) {
  F value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Error in units of the last place of the exact result, rounded to F; 0.5
/// if it is the nearest number.
template <typename F>
double ulps(F got, typename Wide<F>::type exact) {
  using Limits = std::numeric_limits<F>;
  const F rounded = static_cast<F>(exact);
  if (got == rounded) {
    return got != 0 || std::signbit(got) == std::signbit(rounded) ? 0.5 : 1e9;
  }
  if (std::isnan(rounded) || std::isnan(got)) {
    return std::isnan(rounded) && std::isnan(got) ? 0 : 1e9;
  }
  if (std::isinf(rounded) || std::isinf(got)) {
    // Next to the largest number either is right.
    const bool near =
        std::fabs(exact) < 2 * static_cast<decltype(exact)>(Limits::max());
    return near && std::fabs(rounded) >= Limits::max() &&
                   std::fabs(got) >= Limits::max()
               ? 0.5
               : 1e9;
  }
  int exponent;
  std::frexp(rounded, &exponent);
  const int last = std::max(exponent, Limits::min_exponent) - Limits::digits;
  return static_cast<double>(
      std::fabs(std::ldexp(static_cast<decltype(exact)>(got) - exact, -last)));
}

struct Worst {
  double error = 0;
  double x = 0;
  double y = 0;

  void see(double found, double at_x, double at_y = 0) {
    if (found > error) *this = {found, at_x, at_y};
  }
};

void report(const char* type, const char* name, const Worst& worst) {
  std::printf("%-7s %-6s %7.4f  at %a %a\n", type, name, worst.error, worst.x,
              worst.y);
  std::fflush(stdout);
}

/// The worst of work(0) and work(1), in parallel.
Worst in_two(const std::function<Worst(unsigned)>& work) {
  Worst other;
  std::thread thread([&] { other = work(1); });
  Worst worst = work(0);
  thread.join();
  worst.see(other.error, other.x, other.y);
  return worst;
}

template <typename F>
using Of1 = F (*)(F);
template <typename F>
using Of2 = F (*)(F, F);
template <typename F>
using W = typename Wide<F>::type;

/// Computes `count` items.
using Items = std::function<void(const float* x, float* y, int32_t count)>;
using ErrorOf = double (*)(float x, float got, double exact);

double ulps_of_result(float, float got, double exact) {
  return ulps(got, exact);
}
/// Of reciprocals, which are 0 where the divisor is too large for a float.
double ulps_unless_overflow(float, float got, double exact) {
  return got == 0 && exact < 0x1p-128 ? 0 : ulps(got, exact);
}
/// Of results whose terms cancel out: in units of the larger term, x itself.
double ulps_of_terms(float x, float got, double exact) {
  if (!std::isfinite(x)) return ulps(got, exact);
  int exponent;
  std::frexp(x, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent, -125) - 24);
  return std::fabs(got - exact) / unit;
}

Worst all_floats(const Items& items, Of1<double> exact, uint64_t step,
                 ErrorOf error = ulps_of_result) {
  return in_two([=](unsigned part) {
    constexpr int32_t kBlock = 4096;
    std::vector<float> x(kBlock), y(kBlock);
    Worst worst;
    for (uint64_t bits = part * step; bits >> 32 == 0;) {
      int32_t count = 0;
      for (; count < kBlock && bits >> 32 == 0; bits += 2 * step) {
        x[static_cast<size_t>(count++)] =
            float_of<float>(static_cast<uint32_t>(bits));
      }
      items(x.data(), y.data(), count);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        worst.see(error(x[i], y[i], exact(x[i])), x[i]);
      }
    }
    return worst;
  });
}

Items each(Of1<float> fn) {
  return [fn](const float* x, float* y, int32_t count) {
    for (int32_t i = 0; i < count; ++i) y[i] = fn(x[i]);
  };
}

/// A kernel of one tensor, and perhaps a word after it.
Items kernel(orch::KernelFn fn, const char* word = nullptr) {
  return [=](const float* x, float* y, int32_t count) {
    static const uint8_t order[] = {0};
    const int32_t sizes[] = {count, count};  // after a capacity
    const auto tensor = [&](const float* items) {
      orch::Tensor made = {};
      made.tag = orch::Tag::Tensor;
      made.dtype = orch::ScalarType::Float;
      made.dim = 1;
      made.flags = orch::Tensor::kContiguous;
      made.dims = const_cast<int32_t*>(sizes) + 1;
      made.dim_order = const_cast<uint8_t*>(order);
      made.memory = reinterpret_cast<uint8_t*>(const_cast<float*>(items));
      return made;
    };
    orch::Value values[3];
    const int32_t with_word[] = {0, 1, 2}, without[] = {0, 2};
    values[0].set_tensor(tensor(x));
    values[2].set_tensor(tensor(y));
    if (word != nullptr) {
      values[1].set_list(orch::Tag::String, word,
                         static_cast<uint32_t>(std::strlen(word)));
    }
    const orch::Error error =
        word != nullptr ? fn({values, with_word, 3}) : fn({values, without, 2});
    if (error != orch::Error::Ok) std::abort();
  };
}

double exact_gelu(double x) {
  return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
}
double exact_gelu_tanh(double x) {
  if (std::isinf(x)) return x > 0 ? x : 0;
  const double inner = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
  return inner > 0 ? 0.5 * x * (1 + std::tanh(inner))
                   : x * (1 - 1 / (1 + std::exp(2 * inner)));
}
double exact_rsqrt(double x) { return 1 / std::sqrt(x); }
double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Numbers of all exponents, of ordinary ones, and around 1.
template <typename F>
F draw(std::mt19937_64& random, int i) {
  using Bits = typename Wide<F>::Bits;
  if (i % 4 == 0) return float_of<F>(static_cast<Bits>(random()));
  const double sign = (random() & 1) != 0 ? -1 : 1;
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  if (i % 4 == 1) return static_cast<F>(sign * std::exp2(unit * 24 - 16));
  if (i % 4 == 2) return static_cast<F>(sign * (1 + (unit - 0.5)));
  return static_cast<F>(sign * unit * (i % 8 == 3 ? 40 : 750));
}

Worst doubles(Of1<double> fn, Of1<long double> exact, uint64_t count) {
  return in_two([=](unsigned part) {
    std::mt19937_64 random(part + 1);
    Worst worst;
    for (uint64_t i = 0; i < count; ++i) {
      const double x = draw<double>(random, static_cast<int>(i % 8));
      worst.see(ulps(fn(x), exact(x)), x);
    }
    return worst;
  });
}

template <typename F>
Worst pairs(Of2<F> fn, Of2<W<F>> exact, uint64_t count) {
  return in_two([=](unsigned part) {
    std::mt19937_64 random(part + 1);
    Worst worst;
    for (uint64_t i = 0; i < count; ++i) {
      const F x = draw<F>(random, static_cast<int>(i % 8));
      F y = draw<F>(random, static_cast<int>(i / 8 % 8));
      if (i % 3 == 0) y = std::floor(y);
      worst.see(ulps(fn(x, y), exact(x, y)), x, y);
    }
    return worst;
  });
}

/// Powers whose results are ordinary numbers.
template <typename F>
Worst powers(uint64_t count) {
  return in_two([=](unsigned part) {
    std::mt19937_64 random(part + 1);
    Worst worst;
    for (uint64_t i = 0; i < count; ++i) {
      const F x = std::fabs(draw<F>(random, static_cast<int>(i % 3)));
      const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      const F y = static_cast<F>((unit - 0.5) * (sizeof(F) == 4 ? 190 : 1440) /
                                 std::log(x));
      worst.see(ulps(orch::math::pow(x, y),
                     std::pow(static_cast<W<F>>(x), static_cast<W<F>>(y))),
                x, y);
    }
    return worst;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t step =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : uint64_t{97};
  const std::vector<std::string> names(argv + (argc > 2 ? 2 : argc),
                                       argv + argc);
  const auto wanted = [&](const char* name) {
    bool any = names.empty();
    for (const std::string& one : names) any = any || one == name;
    return any;
  };
  if (step == 0) return 2;
  const uint64_t samples = (uint64_t{1} << 24) / (step < 8 ? 1 : step / 8) + 1;
#define ULPS_OF_1(name)                                                      \
  if (wanted(#name)) {                                                       \
    report("float", #name,                                                   \
           all_floats(                                                       \
               each(orch::math::name),                                       \
               [](double x) { return static_cast<double>(std::name(x)); },   \
               step));                                                       \
    report("double", #name,                                                  \
           doubles(                                                          \
               orch::math::name, [](long double x) { return std::name(x); }, \
               samples));                                                    \
  }
  ULPS_OF_1(exp)
  ULPS_OF_1(expm1)
  ULPS_OF_1(log)
  ULPS_OF_1(log1p)
  ULPS_OF_1(log2)
  ULPS_OF_1(log10)
  ULPS_OF_1(sqrt)
  ULPS_OF_1(erf)
  ULPS_OF_1(sin)
  ULPS_OF_1(cos)
  ULPS_OF_1(tan)
  ULPS_OF_1(asin)
  ULPS_OF_1(acos)
  ULPS_OF_1(atan)
  ULPS_OF_1(sinh)
  ULPS_OF_1(cosh)
  ULPS_OF_1(tanh)
  ULPS_OF_1(asinh)
  ULPS_OF_1(acosh)
  ULPS_OF_1(atanh)
#undef ULPS_OF_1
#define ULPS_OF_2(name, F)                                                \
  if (wanted(#name)) {                                                    \
    report(#F, #name,                                                     \
           pairs<F>(                                                      \
               orch::math::name,                                          \
               [](W<F> x, W<F> y) { return std::name(x, y); }, samples)); \
  }
  ULPS_OF_2(atan2, float)
  ULPS_OF_2(atan2, double)
  ULPS_OF_2(pow, float)
  ULPS_OF_2(pow, double)
#undef ULPS_OF_2
  namespace kernels = orch::portable;
  if (wanted("rsqrt")) {
    report("float", "rsqrt",
           all_floats(kernel(kernels::rsqrt_out), exact_rsqrt, step));
  }
  if (wanted("sigmoid")) {
    report("float", "sigmoid",
           all_floats(kernel(kernels::sigmoid_out), exact_sigmoid, step,
                      ulps_unless_overflow));
  }
  if (wanted("gelu")) {
    report("float", "gelu, of x",
           all_floats(kernel(kernels::gelu_out, "none"), exact_gelu, step,
                      ulps_of_terms));
    report("float", "gelu tanh, of x",
           all_floats(kernel(kernels::gelu_out, "tanh"), exact_gelu_tanh, step,
                      ulps_of_terms));
  }
  if (wanted("pow")) {
    report("float", "pow", powers<float>(samples));
    report("double", "pow", powers<double>(samples));
  }
  return 0;
}
