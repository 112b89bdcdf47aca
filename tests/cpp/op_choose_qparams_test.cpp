// choose_qparams and choose_qparams_per_token_asymmetric.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

Error choose(const TestTensor& input, int64_t low, int64_t high,
             const TestTensor& scale, const TestTensor& zero_point) {
  return Call()
      .add(input)
      .integer(low)
      .integer(high)
      .number(1)  // eps means nothing
      .integer(1)
      .add(scale)
      .add(zero_point)
      .run(quantized::choose_qparams_Tensor_out);
}

Error choose_tokens(const TestTensor& input, const TestTensor& scale,
                    const TestTensor& zero_point) {
  return Call()
      .add(input)
      .integer(1)
      .add(scale)
      .add(zero_point)
      .run(quantized::choose_qparams_per_token_asymmetric_out);
}

TEST_CASE("0 is exact, and the range fits") {
  const TestTensor scale(ScalarType::Double, {1});
  const TestTensor zero(ScalarType::Long, {1});
  const auto check = [&](std::vector<float> items, double s, int64_t z) {
    const Sizes sizes = {static_cast<int32_t>(items.size())};
    const auto x = TestTensor::of<float>(sizes, items);
    REQUIRE(choose(x, -128, 127, scale, zero) == Error::Ok);
    CHECK(scale.items<double>()[0] == s);
    CHECK(zero.items<int64_t>()[0] == z);
  };
  check({-1.28F * 100, 127}, (128.0 + 127.0) / 255, 0);
  check({255}, 1, -128);
  check({-255}, 1, 127);
  check({0}, 0.1, 127);
}

TEST_CASE("limits as wide as they can be") {
  const TestTensor scale(ScalarType::Double, {1});
  const TestTensor zero(ScalarType::Long, {1});
  const auto x = TestTensor::of<float>({2}, {-3e38F, 3e38F});
  CHECK(choose(x, INT32_MIN, INT32_MAX, scale, zero) == Error::Ok);
  CHECK(std::isfinite(scale.items<double>()[0]));
  const auto y = TestTensor::of<float>({1}, {-1});
  CHECK(choose(y, INT32_MIN, INT32_MAX, scale, zero) == Error::Ok);
  CHECK(zero.items<int64_t>()[0] <= INT32_MAX);
}

TEST_CASE("tokens anywhere in memory") {
  const auto x =
      TestTensor::of<float>({1, 2, 1, 2}, {255, -255, 510, 0}, {0, 3, 2, 1});
  const TestTensor scale(ScalarType::Double, {1, 2, 1, 1});
  const auto zero = TestTensor(ScalarType::Long, {1, 3, 1, 1}).dynamic();
  CHECK(choose_tokens(x, scale, zero) == Error::Ok);
  CHECK(zero.sizes() == Sizes{1, 2, 1, 1});
  CHECK(scale.items<double>() == std::vector<double>{2, 1});
  CHECK(zero.items<int64_t>()[0] == -128);
  CHECK(zero.items<int64_t>()[1] == 127);
}

TEST_CASE("what does not fit is refused, and nothing is written") {
  const TestTensor x(ScalarType::Float, {1, 2});
  const TestTensor scale(ScalarType::Double, {1, 1});
  const TestTensor zero(ScalarType::Long, {1, 1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, HUGE_VAL, -HUGE_VAL}) {
    const auto y = TestTensor::of<float>({1, 2}, {1, static_cast<float>(bad)});
    CHECK(choose(y, -128, 127, scale, zero) == Error::InvalidArgument);
    CHECK(choose_tokens(y, scale, zero) == Error::InvalidArgument);
  }
  CHECK(choose(x, 1, 1, scale, zero) == Error::InvalidArgument);
  CHECK(choose(x, INT64_MIN, 1, scale, zero) == Error::InvalidArgument);
  CHECK(choose(x, 1, INT64_MAX, scale, zero) == Error::InvalidArgument);
  const TestTensor empty(ScalarType::Float, {2, 0});
  CHECK(choose(empty, -128, 127, scale, zero) == Error::InvalidArgument);
  CHECK(choose_tokens(empty, {ScalarType::Double, {2, 1}},
                      {ScalarType::Long, {2, 1}}) == Error::InvalidArgument);
  const TestTensor two(ScalarType::Double, {2});
  CHECK(choose(x, -128, 127, two, zero) == Error::InvalidArgument);
  CHECK(choose_tokens(x, two, zero) == Error::InvalidArgument);
  CHECK(choose(x, -128, 127, zero, zero) == Error::InvalidArgument);
  CHECK(choose_tokens(x, scale, scale) == Error::InvalidArgument);
  const TestTensor doubles(ScalarType::Double, {1, 2});
  CHECK(choose(doubles, -128, 127, scale, zero) == Error::InvalidArgument);
  CHECK(choose_tokens({ScalarType::Float, {}}, scale, zero) ==
        Error::InvalidArgument);
  CHECK(scale.items<uint8_t>() ==
        std::vector<uint8_t>(8, TestTensor::kPattern));
  CHECK(zero.items<uint8_t>() == std::vector<uint8_t>(8, TestTensor::kPattern));
}

}  // namespace
}  // namespace orch::test
