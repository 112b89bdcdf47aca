#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using quantized::quantize_per_tensor_out;
using quantized::quantize_per_tensor_Tensor_out;

constexpr double kScale = 0.5;
const float kNan = std::numeric_limits<float>::quiet_NaN();

Error quantize(const TestTensor& input, double scale, int64_t zero_point,
               int64_t low, int64_t high, const TestTensor& out) {
  return Call()
      .add(input)
      .number(scale)
      .integer(zero_point)
      .integer(low)
      .integer(high)
      .integer(static_cast<int>(out.dtype()))
      .add(out)
      .run(quantize_per_tensor_out);
}

Error quantize(const TestTensor& input, const TestTensor& scale,
               const TestTensor& zero_point, const TestTensor& out) {
  return Call()
      .add(input)
      .add(scale)
      .add(zero_point)
      .integer(-128)
      .integer(127)
      .integer(static_cast<int>(out.dtype()))
      .add(out)
      .run(quantize_per_tensor_Tensor_out);
}

std::vector<int8_t> chars(std::vector<float> items, int64_t zero_point,
                          int64_t low, int64_t high, double scale = kScale) {
  const Sizes sizes = {static_cast<int32_t>(items.size())};
  const TestTensor out(ScalarType::Char, sizes);
  CHECK(quantize(TestTensor::of<float>(sizes, items), scale, zero_point, low,
                 high, out) == Error::Ok);
  return out.items<int8_t>();
}

TEST_CASE(
    "halves are rounded to even numbers, before the zero point is added") {
  CHECK(chars({0.25F, 0.75F, 1.25F, -0.25F, -0.75F, 1.3F}, 0, -128, 127) ==
        std::vector<int8_t>{0, 2, 2, 0, -2, 3});
  CHECK(chars({0.25F, 0.75F, -0.25F}, 1, -128, 127) ==
        std::vector<int8_t>{1, 3, 1});
}

TEST_CASE("numbers are limited") {
  CHECK(chars({-99, 99, 4, -4, 3.6F}, 0, -8, 7) ==
        std::vector<int8_t>{-8, 7, 7, -8, 7});
  CHECK(chars({-1, 1}, 100, 5, 5) == std::vector<int8_t>{5, 5});
  CHECK(chars({-1, 1}, 1000, -128, 127) == std::vector<int8_t>{127, 127});
}

TEST_CASE("what is no number, or infinite, has a result") {
  CHECK(chars({kNan, HUGE_VALF, -HUGE_VALF, 3e38F, -3e38F}, 1, -100, 100) ==
        std::vector<int8_t>{-100, 100, -100, 100, -100});
  // The inverse of the scale is infinite: 0 times that is no number.
  CHECK(chars({1, -1, 0}, 1, -100, 100, 0) ==
        std::vector<int8_t>{100, -100, -100});
  CHECK(chars({1, -1}, 1, -100, 100, HUGE_VAL) == std::vector<int8_t>{1, 1});
  const auto x = TestTensor::of<float>({4}, {3e9F, -3e9F, kNan, 2147483520.0F});
  const TestTensor out(ScalarType::Int, {4});
  CHECK(quantize(x, 1, 0, INT32_MIN, INT32_MAX, out) == Error::Ok);
  CHECK(out.items<int32_t>() ==
        std::vector<int32_t>{INT32_MAX, INT32_MIN, INT32_MIN, 2147483520});
}

TEST_CASE("limits of Int that are no floats are kept") {
  const auto x = TestTensor::of<float>({3}, {2e7F, 16777216.0F, -2e7F});
  const TestTensor out(ScalarType::Int, {3});
  CHECK(quantize(x, 1, 0, -16777217, 16777217, out) == Error::Ok);
  CHECK(out.items<int32_t>() ==
        std::vector<int32_t>{16777217, 16777216, -16777217});
}

TEST_CASE("the output gets the sizes of the input") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const auto out = TestTensor(ScalarType::Char, {4, 4}).dynamic();
  CHECK(quantize(x, 1, 0, -128, 127, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2, 3});
  CHECK(quantize(x, 1, 0, -128, 127, {ScalarType::Char, {3, 2}}) ==
        Error::InvalidArgument);
}

TEST_CASE("a scale and a zero point in tensors") {
  const auto x = TestTensor::of<float>({2}, {1, -1});
  const auto scale = TestTensor::of<float>({}, {0.25F});
  const auto zero = TestTensor::of<int64_t>({1, 1}, {3});
  const TestTensor out(ScalarType::Char, {2});
  CHECK(quantize(x, scale, zero, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{7, -1});
  // Upper bits of a zero point are dropped.
  const auto big = TestTensor::of<int64_t>({1}, {(int64_t{5} << 32) + 3});
  CHECK(quantize(x, scale, big, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{7, -1});

  const TestTensor two(ScalarType::Double, {2});
  const TestTensor none(ScalarType::Long, {0});
  CHECK(quantize(x, two, zero, out) == Error::InvalidArgument);
  CHECK(quantize(x, scale, none, out) == Error::InvalidArgument);
  const TestTensor half(ScalarType::Half, {1});
  CHECK(quantize(x, half, zero, out) == Error::InvalidArgument);
  CHECK(quantize(x, scale, half, out) == Error::InvalidArgument);
  // A tensor that is the output, too, would lose its one item.
  const auto twice = TestTensor(ScalarType::Char, {2}).dynamic();
  CHECK(quantize(x, scale, twice, twice) == Error::InvalidArgument);
}

TEST_CASE("what does not fit is refused") {
  const TestTensor x(ScalarType::Float, {2});
  const TestTensor out(ScalarType::Char, {2});
  const auto refused = [&](int64_t zero_point, int64_t low, int64_t high) {
    return quantize(x, 1, zero_point, low, high, out);
  };
  CHECK(refused(0, -129, 127) == Error::InvalidArgument);
  CHECK(refused(0, -128, 128) == Error::InvalidArgument);
  CHECK(refused(0, INT64_MIN, 127) == Error::InvalidArgument);
  CHECK(refused(0, -128, INT64_MAX) == Error::InvalidArgument);
  CHECK(refused(0, 2, 1) == Error::NotSupported);
  CHECK(refused(int64_t{1} << 31, -128, 127) == Error::InvalidArgument);
  CHECK(refused(INT64_MIN, -128, 127) == Error::InvalidArgument);
  const TestTensor bytes(ScalarType::Byte, {2});
  CHECK(quantize(x, 1, 0, -1, 255, bytes) == Error::InvalidArgument);
  CHECK(quantize(x, 1, 0, 0, 256, bytes) == Error::InvalidArgument);
  const TestTensor words(ScalarType::UInt16, {2});
  CHECK(quantize(x, 1, 0, 0, 65535, words) == Error::Ok);
  CHECK(quantize(x, 1, 0, -1, 65535, words) == Error::InvalidArgument);
  const TestTensor longs(ScalarType::Long, {2});
  CHECK(quantize(x, 1, 0, 0, 1, longs) == Error::InvalidArgument);
  const TestTensor ints(ScalarType::Int, {2});
  CHECK(quantize(ints, 1, 0, -128, 127, out) == Error::InvalidArgument);
  // The argument `dtype` says something else than the output.
  CHECK(Call()
            .add(x)
            .number(1)
            .integer(0)
            .integer(0)
            .integer(1)
            .integer(static_cast<int>(ScalarType::Byte))
            .add(out)
            .run(quantize_per_tensor_out) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
