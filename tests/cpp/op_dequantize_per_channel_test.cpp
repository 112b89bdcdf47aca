#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using quantized::dequantize_per_channel_out;

Error dequantize(const TestTensor& input, const TestTensor& scales,
                 const TestTensor* zero_points, int64_t axis,
                 const TestTensor& out) {
  Call call;
  call.add(input).add(scales);
  zero_points != nullptr ? call.add(*zero_points) : call.none();
  return call.integer(axis)
      .integer(0)
      .integer(0)
      .integer(static_cast<int>(input.dtype()))
      .none()
      .add(out)
      .run(dequantize_per_channel_out);
}

TEST_CASE("channels have parameters of their own") {
  const auto x = TestTensor::of<int8_t>({2, 2}, {-128, 127, 10, 20});
  const auto scales = TestTensor::of<double>({2}, {0.5, 2});
  const auto zeros = TestTensor::of<int32_t>({2}, {0, 15});
  const TestTensor out(ScalarType::Float, {2, 2});
  CHECK(dequantize(x, scales, &zeros, 0, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-64, 63.5F, -10, 10});
  CHECK(dequantize(x, scales, nullptr, -1, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-64, 254, 5, 40});
}

TEST_CASE("dynamic sizes and no items") {
  const TestTensor x(ScalarType::Byte, {0, 2});
  const TestTensor scales(ScalarType::Float, {2});
  const auto out = TestTensor(ScalarType::Half, {3, 2}).dynamic();
  CHECK(dequantize(x, scales, nullptr, 1, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{0, 2});
}

TEST_CASE("what does not fit is refused") {
  const TestTensor x(ScalarType::Char, {2, 3});
  const TestTensor scales(ScalarType::Float, {2});
  const TestTensor zeros(ScalarType::Long, {2});
  const TestTensor bad(ScalarType::Long, {3});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(dequantize(x, scales, &zeros, 1, out) == Error::InvalidArgument);
  CHECK(dequantize(x, scales, &bad, 0, out) == Error::InvalidArgument);
  CHECK(dequantize(x, scales, &scales, 0, out) == Error::InvalidArgument);
  CHECK(dequantize(x, zeros, &zeros, 0, out) == Error::InvalidArgument);
  CHECK(dequantize(x, scales, &zeros, 0, {ScalarType::Float, {2, 2}}) ==
        Error::InvalidArgument);
  CHECK(dequantize(out, scales, &zeros, 0, out) == Error::InvalidArgument);
  CHECK(dequantize(x, scales, &zeros, 0, x) == Error::InvalidArgument);
  // Scales that are the output, too, would change their size.
  const TestTensor one(ScalarType::Char, {1});
  const auto twice = TestTensor(ScalarType::Float, {1}).dynamic();
  CHECK(dequantize(one, twice, nullptr, 0, twice) == Error::Ok);
  const TestTensor square(ScalarType::Char, {1, 1});
  CHECK(dequantize(square, twice, nullptr, 0, twice) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
