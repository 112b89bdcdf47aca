#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using quantized::quantize_per_channel_out;

Error quantize(const TestTensor& input, const TestTensor& scales,
               const TestTensor& zero_points, int64_t axis,
               const TestTensor& out, int64_t low = -128, int64_t high = 127) {
  return Call()
      .add(input)
      .add(scales)
      .add(zero_points)
      .integer(axis)
      .integer(low)
      .integer(high)
      .integer(static_cast<int>(out.dtype()))
      .add(out)
      .run(quantize_per_channel_out);
}

TEST_CASE("channels have parameters of their own") {
  const auto x = TestTensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto scales = TestTensor::of<float>({2}, {1, 0.5F});
  const auto zeros = TestTensor::of<int64_t>({2}, {0, -10});
  const TestTensor out(ScalarType::Char, {2, 3});
  CHECK(quantize(x, scales, zeros, 0, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, 2, 3, -2, 0, 2});
  const auto three = TestTensor::of<double>({3}, {1, 0.5, 0.25});
  const auto none = TestTensor::of<int32_t>({3}, {0, 1, 2});
  CHECK(quantize(x, three, none, -1, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, 5, 14, 4, 11, 26});
}

TEST_CASE("channels anywhere in memory") {
  const auto x =
      TestTensor::of<float>({1, 2, 1, 2}, {1, 3, 2, 4}, {0, 2, 3, 1});
  const auto scales = TestTensor::of<float>({2}, {1, 0.5F});
  const auto zeros = TestTensor::of<int64_t>({2}, {0, 0});
  const TestTensor out(ScalarType::Char, {1, 2, 1, 2});
  CHECK(quantize(x, scales, zeros, 1, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, 2, 6, 8});
}

TEST_CASE("what does not fit is refused") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const TestTensor scales(ScalarType::Float, {2});
  const TestTensor zeros(ScalarType::Long, {2});
  const TestTensor out(ScalarType::Char, {2, 3});
  CHECK(quantize(x, scales, zeros, 1, out) == Error::InvalidArgument);
  CHECK(quantize(x, scales, zeros, 2, out) == Error::InvalidArgument);
  CHECK(quantize(x, scales, zeros, -3, out) == Error::InvalidArgument);
  CHECK(quantize(x, scales, zeros, INT64_MIN, out) == Error::InvalidArgument);
  CHECK(quantize(x, zeros, zeros, 0, out) == Error::InvalidArgument);
  CHECK(quantize(x, scales, scales, 0, out) == Error::InvalidArgument);
  CHECK(quantize(x, scales, {ScalarType::Long, {3}}, 0, out) ==
        Error::InvalidArgument);
  CHECK(quantize(x, {ScalarType::Float, {2, 1}}, zeros, 0, out) ==
        Error::InvalidArgument);
  CHECK(quantize(x, scales, zeros, 0, out, -129) == Error::InvalidArgument);
  CHECK(quantize(x, scales, zeros, 0, out, 1, 0) == Error::NotSupported);
  CHECK(quantize(x, scales, zeros, 0, {ScalarType::Char, {3, 2}}) ==
        Error::InvalidArgument);
  const TestTensor number(ScalarType::Float, {});
  CHECK(quantize(number, scales, zeros, 0, {ScalarType::Char, {}}) ==
        Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
