// quantize_per_token and dequantize_per_token.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

Error quantize(const TestTensor& input, const TestTensor& scales,
               const TestTensor& zero_points, const TestTensor& out,
               int64_t high = 127) {
  return Call()
      .add(input)
      .add(scales)
      .add(zero_points)
      .integer(-128)
      .integer(high)
      .integer(static_cast<int>(out.dtype()))
      .add(out)
      .run(quantized::quantize_per_token_out);
}

Error dequantize(const TestTensor& input, const TestTensor& scales,
                 const TestTensor& zero_points, const TestTensor& out,
                 ScalarType out_dtype = ScalarType::Float) {
  return Call()
      .add(input)
      .add(scales)
      .add(zero_points)
      .integer(-128)
      .integer(127)
      .integer(static_cast<int>(input.dtype()))
      .integer(static_cast<int>(out_dtype))
      .add(out)
      .run(quantized::dequantize_per_token_out);
}

TEST_CASE("tokens have parameters of their own, both ways") {
  const auto x = TestTensor::of<float>({2, 1, 2}, {1, -1, 3, -3});
  const auto scales = TestTensor::of<double>({2, 1, 1}, {0.5, 1});
  const auto zeros = TestTensor::of<int64_t>({2, 1, 1}, {0, 10});
  const TestTensor numbers(ScalarType::Char, {2, 1, 2});
  CHECK(quantize(x, scales, zeros, numbers) == Error::Ok);
  CHECK(numbers.items<int8_t>() == std::vector<int8_t>{2, -2, 13, 7});
  const TestTensor back(ScalarType::Float, {2, 1, 2});
  CHECK(dequantize(numbers, scales, zeros, back) == Error::Ok);
  CHECK(back.items<float>() == x.items<float>());
}

TEST_CASE("what does not fit is refused, both ways") {
  const TestTensor x(ScalarType::Float, {2, 3, 2});
  const TestTensor scales(ScalarType::Double, {2, 3, 1});
  const TestTensor zeros(ScalarType::Long, {2, 3, 1});
  const TestTensor y(ScalarType::Char, {2, 3, 2});
  const auto both = [&](const TestTensor& s, const TestTensor& z) {
    const Error one = quantize(x, s, z, y);
    CHECK(dequantize(y, s, z, x) == one);
    return one;
  };
  CHECK(both(scales, zeros) == Error::Ok);
  CHECK(both(scales, scales) == Error::InvalidArgument);
  CHECK(both(zeros, zeros) == Error::InvalidArgument);
  CHECK(both({ScalarType::Double, {6}}, zeros) == Error::InvalidArgument);
  CHECK(both({ScalarType::Double, {3, 2, 1}}, zeros) == Error::InvalidArgument);
  CHECK(both({ScalarType::Double, {2, 3, 2}}, {ScalarType::Long, {2, 3, 2}}) ==
        Error::InvalidArgument);
  CHECK(both(scales, {ScalarType::Long, {2, 1, 1}}) == Error::InvalidArgument);
  CHECK(both(scales, {ScalarType::Long, {2, 3, 1}, {1, 0, 2}}) ==
        Error::NotSupported);
  CHECK(quantize(x, scales, zeros, y, 128) == Error::InvalidArgument);
  CHECK(quantize(x, scales, zeros, {ScalarType::Char, {2, 3, 3}}) ==
        Error::InvalidArgument);
  CHECK(dequantize(y, scales, zeros, x, ScalarType::Half) ==
        Error::InvalidArgument);
  const TestTensor number(ScalarType::Float, {});
  CHECK(quantize(number, {ScalarType::Float, {}}, {ScalarType::Long, {}},
                 {ScalarType::Char, {}}) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
