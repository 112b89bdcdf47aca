#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using quantized::dequantize_per_tensor_out;
using quantized::dequantize_per_tensor_Tensor_out;

Error dequantize(const TestTensor& input, int64_t zero_point,
                 const TestTensor& out) {
  return Call()
      .add(input)
      .number(0.5)
      .integer(zero_point)
      .integer(9)  // limits mean nothing
      .integer(-9)
      .integer(static_cast<int>(input.dtype()))
      .none()
      .add(out)
      .run(dequantize_per_tensor_out);
}

Error dequantize(const TestTensor& input, const TestTensor& scale,
                 const TestTensor& zero_point, const TestTensor& out,
                 ScalarType dtype, ScalarType out_dtype) {
  return Call()
      .add(input)
      .add(scale)
      .add(zero_point)
      .integer(0)
      .integer(0)
      .integer(static_cast<int>(dtype))
      .integer(static_cast<int>(out_dtype))
      .add(out)
      .run(dequantize_per_tensor_Tensor_out);
}

TEST_CASE("numbers become floats") {
  const auto x = TestTensor::of<int8_t>({3}, {-128, 3, 127});
  const TestTensor out(ScalarType::Float, {3});
  CHECK(dequantize(x, 3, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-65.5F, 0, 62});
  const TestTensor wide(ScalarType::Double, {3});
  CHECK(dequantize(x, 1000, wide) == Error::Ok);
  CHECK(wide.items<double>() == std::vector<double>{-564, -498.5, -436.5});
}

TEST_CASE("differences wrap around where 32 bits do not hold them") {
  const auto x = TestTensor::of<int32_t>({2}, {INT32_MAX, INT32_MIN});
  const TestTensor out(ScalarType::Float, {2});
  CHECK(dequantize(x, -1, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-0x1p30F, -0x1p30F});
}

TEST_CASE("dim orders") {
  const auto x = TestTensor::of<uint8_t>({1, 2, 1, 2}, {1, 2, 3, 4});
  const TestTensor out(ScalarType::Float, {1, 2, 1, 2}, {0, 2, 3, 1});
  CHECK(dequantize(x, 0, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0.5F, 1.5F, 1, 2});
}

TEST_CASE("a scale and a zero point in tensors") {
  const auto x = TestTensor::of<int16_t>({2}, {-300, 300});
  const auto scale = TestTensor::of<double>({1}, {0.25});
  const auto zero = TestTensor::of<int32_t>({}, {-100});
  const auto out = TestTensor(ScalarType::Float, {3}).dynamic();
  const ScalarType in = ScalarType::Short;
  CHECK(dequantize(x, scale, zero, out, in, ScalarType::Float) == Error::Ok);
  CHECK(out.sizes() == Sizes{2});
  CHECK(out.items<float>()[0] == -50);
  CHECK(out.items<float>()[1] == 100);
  CHECK(dequantize(x, scale, zero, out, in, ScalarType::Half) ==
        Error::InvalidArgument);
  CHECK(dequantize(x, scale, zero, out, ScalarType::Char, ScalarType::Float) ==
        Error::InvalidArgument);
  const TestTensor two(ScalarType::Long, {2});
  CHECK(dequantize(x, scale, two, out, in, ScalarType::Float) ==
        Error::InvalidArgument);
  CHECK(dequantize(x, two, zero, out, in, ScalarType::Float) ==
        Error::InvalidArgument);
}

TEST_CASE("what does not fit is refused") {
  const TestTensor x(ScalarType::Char, {2});
  const TestTensor out(ScalarType::Float, {2});
  CHECK(dequantize(x, int64_t{1} << 31, out) == Error::InvalidArgument);
  CHECK(dequantize(x, 0, {ScalarType::Int, {2}}) == Error::InvalidArgument);
  CHECK(dequantize(x, 0, {ScalarType::Float, {3}}) == Error::InvalidArgument);
  const TestTensor longs(ScalarType::Long, {2});
  CHECK(dequantize(longs, 0, out) == Error::InvalidArgument);
  CHECK(dequantize(out, 0, out) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
