// The generator, rand, randn and native_dropout.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "orch/random.h"
#include "support/call.h"
#include "support/kernels.h"
#include "util/types.h"

namespace orch::test {
namespace {

using namespace portable;

TEST_CASE("the generator is PCG32") {
  // Source: the first numbers of pcg32_oneseq-demo of the reference code.
  orch_random_seed(42);
  for (const uint32_t expected : {0xC2F57BD6U, 0x6B07C4A9U, 0x72B7B29BU,
                                  0x44215383U, 0xF5AF5EADU, 0x68BEB632U}) {
    CHECK(orch_random_next() == expected);
  }
}

Error draw(KernelFn kernel, const TestTensor& out) {
  const Sizes sizes = out.sizes();
  return Call().ints({sizes.begin(), sizes.end()}).add(out).run(kernel);
}

TEST_CASE("the same seed gives the same numbers") {
  const TestTensor one(ScalarType::Float, {3, 5});
  const TestTensor other(ScalarType::Float, {3, 5});
  for (const KernelFn kernel : {rand_out, randn_out}) {
    orch_random_seed(7);
    CHECK(draw(kernel, one) == Error::Ok);
    CHECK(draw(kernel, other) == Error::Ok);
    CHECK(one.items<float>() != other.items<float>());
    orch_random_seed(7);
    CHECK(draw(kernel, other) == Error::Ok);
    CHECK(one.items<float>() == other.items<float>());
    orch_random_seed(8);
    CHECK(draw(kernel, other) == Error::Ok);
    CHECK(one.items<float>() != other.items<float>());
  }
}

/// Moments of many numbers: mean, variance, and fourth central moment.
template <typename T>
std::vector<double> moments(KernelFn kernel) {
  constexpr int32_t kCount = 1 << 16;
  const TestTensor out(DtypeOf<T>::value, {kCount});
  orch_random_seed(1);
  CHECK(draw(kernel, out) == Error::Ok);
  std::vector<double> found(3);
  const std::vector<T> items = out.items<T>();
  const auto x = [&](size_t i) { return double{number_of(items[i])}; };
  for (size_t i = 0; i < kCount; ++i) found[0] += x(i) / kCount;
  for (size_t i = 0; i < kCount; ++i) {
    const double square = (x(i) - found[0]) * (x(i) - found[0]);
    found[1] += square / kCount;
    found[2] += square * square / kCount;
    if (kernel == rand_out) CHECK((x(i) >= 0 && x(i) < 1));
  }
  return found;
}

TEST_CASE_TEMPLATE("numbers have their distribution", T, float, double, Half,
                   BFloat16) {
  const double step = sizeof(T) == 2 ? 0x1p-8 : 0;
  const std::vector<double> uniform = moments<T>(rand_out);
  CHECK(std::abs(uniform[0] - 0.5) < 0.005 + step);
  CHECK(std::abs(uniform[1] - 1.0 / 12) < 0.002);
  CHECK(std::abs(uniform[2] - 1.0 / 80) < 0.001);
  const std::vector<double> normal = moments<T>(randn_out);
  CHECK(std::abs(normal[0]) < 0.02);
  CHECK(std::abs(normal[1] - 1) < 0.03);
  CHECK(std::abs(normal[2] - 3) < 0.2);
}

TEST_CASE("rand and randn give floats of the sizes that are said") {
  for (const KernelFn kernel : {rand_out, randn_out}) {
    CHECK(draw(kernel, {ScalarType::Int, {3}}) == Error::DtypeNotSelected);
    const TestTensor out(ScalarType::Float, {3});
    CHECK(Call().ints({4}).add(out).run(kernel) == Error::InvalidArgument);
    CHECK(Call().ints({}).add(out).run(kernel) == Error::InvalidArgument);
    CHECK(draw(kernel, {ScalarType::Float, {0}}) == Error::Ok);
    CHECK(draw(kernel, {ScalarType::Double, {}}) == Error::Ok);
  }
}

TEST_CASE("native_dropout drops a part and scales the rest") {
  constexpr int32_t kCount = 10000;
  const std::vector<float> ones(kCount, 1);
  const auto x = TestTensor::of<float>({kCount}, ones);
  const TestTensor out(ScalarType::Float, {kCount});
  const TestTensor mask(ScalarType::Bool, {kCount});
  const auto run = [&](double p) {
    return Call().add(x).number(p).boolean(true).add(out).add(mask).run(
        native_dropout_out);
  };
  orch_random_seed(3);
  CHECK(run(0.75) == Error::Ok);
  int kept = 0;
  const std::vector<float> items = out.items<float>();
  for (size_t i = 0; i < kCount; ++i) {
    const bool keeps = mask.items<bool>()[i];
    kept += keeps ? 1 : 0;
    CHECK(items[i] == (keeps ? 4 : 0));
  }
  CHECK(std::abs(kept - kCount / 4) < 200);
  CHECK(run(1) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>(kCount, 0));
  CHECK(mask.items<bool>() == std::vector<bool>(kCount, false));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double p : {-0.1, 1.1, nan}) {
    CHECK(run(p) == Error::InvalidArgument);
  }
}

TEST_CASE("native_dropout of integers drops nothing") {
  const auto x = TestTensor::of<int8_t>({2}, {1, 2});
  const TestTensor out(ScalarType::Char, {2});
  const TestTensor mask(ScalarType::Bool, {2});
  const auto run = [&](bool train, const TestTensor& to) {
    return Call().add(x).number(0.5).boolean(train).add(to).add(mask).run(
        native_dropout_out);
  };
  CHECK(run(false, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, 2});
  CHECK(run(true, out) == Error::InvalidArgument);
  CHECK(run(false, {ScalarType::Byte, {2}}) == Error::InvalidArgument);
  CHECK(Call().add(x).number(0.5).none().add(out).add(mask).run(
            native_dropout_out) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
