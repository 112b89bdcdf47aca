// quantize_per_tensor and dequantize_per_tensor of cortex_m against those of
// quantized_decomposed, which any layout and zero point goes the same way.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "orch/quantize.h"
#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

constexpr int64_t kLow[] = {-128, -32768};
constexpr int64_t kHigh[] = {127, 32767};
constexpr ScalarType kDtypes[] = {ScalarType::Char, ScalarType::Short};

Error quantize(KernelFn kernel, const TestTensor& input, double scale,
               int64_t zero_point, int64_t low, int64_t high,
               const TestTensor& out) {
  return Call()
      .add(input)
      .number(scale)
      .integer(zero_point)
      .integer(low)
      .integer(high)
      .integer(static_cast<int>(out.dtype()))
      .add(out)
      .run(kernel);
}

Error dequantize(const TestTensor& input, const TestTensor& out) {
  return Call()
      .add(input)
      .number(0.5)
      .integer(3)
      .integer(-128)
      .integer(127)
      .integer(static_cast<int>(input.dtype()))
      .add(out)
      .run(cortex_m::dequantize_per_tensor_out);
}

/// Floats around the limits, halves, and what is no number or too large.
std::vector<float> items(int64_t zero_point, float scale) {
  std::mt19937 random(20261122);
  std::uniform_int_distribution<int> numbers(-70000, 70000);
  std::vector<float> found = {0.0F,     -0.0F,     HUGE_VALF, -HUGE_VALF,
                              3e38F,    -3e38F,    0x1p-140F, 0x1p22F,
                              -0x1p22F, 0x1.8p23F, -0x1p31F,  0x1p31F};
  found.push_back(std::numeric_limits<float>::quiet_NaN());
  found.push_back(-std::numeric_limits<float>::quiet_NaN());
  for (int i = 0; i < 2000; ++i) {
    const int number = numbers(random) / (i % 2 == 0 ? 1 : 200);
    const auto center = static_cast<float>(-zero_point);
    found.push_back((center + static_cast<float>(number) * 0.5F) * scale);
  }
  return found;
}

TEST_CASE("cortex_m quantizes as quantized_decomposed, near and far from 0") {
  for (const int64_t zero :
       {0, 3, -128, 1000, 32768, 1 << 21, -(1 << 21), (1 << 21) + 1,
        -(1 << 21) - 1, 1 << 24, 1 << 30, INT32_MAX, INT32_MIN}) {
    for (const double scale : {0.5, 1.0, 0.0371, 0.0, 1e-39, HUGE_VAL, -0.5}) {
      const auto floats =
          items(zero, std::isnormal(scale) ? static_cast<float>(scale) : 1.0F);
      const Sizes sizes = {static_cast<int32_t>(floats.size())};
      const auto x = TestTensor::of<float>(sizes, floats);
      for (const int wide : {0, 1}) {
        for (const int64_t narrower : {0, 28}) {
          const int64_t low = kLow[wide] + narrower;
          const int64_t high = kHigh[wide] - narrower;
          const TestTensor want(kDtypes[wide], sizes);
          const TestTensor out(kDtypes[wide], sizes);
          REQUIRE(quantize(quantized::quantize_per_tensor_out, x, scale, zero,
                           low, high, want) == Error::Ok);
          REQUIRE(quantize(cortex_m::quantize_per_tensor_out, x, scale, zero,
                           low, high, out) == Error::Ok);
          CAPTURE(zero);
          CAPTURE(scale);
          CHECK(memcmp(out.data(), want.data(), out.bytes()) == 0);
        }
      }
    }
  }
}

TEST_CASE("applications quantize and dequantize as the kernels do") {
  for (const int64_t zero : {0, 3, -128, 127}) {
    for (const double scale : {0.5, 1.0, 0.0371, 1e-3, 3.7e5}) {
      const auto floats = items(zero, static_cast<float>(scale));
      const auto count = static_cast<int32_t>(floats.size());
      const auto x = TestTensor::of<float>({count}, floats);
      for (const int64_t low : {-128, -127}) {
        const TestTensor want(ScalarType::Char, {count});
        REQUIRE(quantize(cortex_m::quantize_per_tensor_out, x, scale, zero, low,
                         127, want) == Error::Ok);
        CAPTURE(zero);
        CAPTURE(scale);
        const std::vector<int8_t> numbers = want.items<int8_t>();
        int wrong = 0;
        for (int32_t i = 0; i < count; ++i) {
          const int32_t number = orch_quantize(
              floats[static_cast<size_t>(i)], static_cast<float>(scale),
              static_cast<int32_t>(zero), static_cast<int32_t>(low), 127);
          wrong += number != numbers[static_cast<size_t>(i)];
        }
        CHECK(wrong == 0);
      }
    }
  }
  std::vector<int8_t> numbers;
  for (int number = -128; number < 128; ++number) {
    numbers.push_back(static_cast<int8_t>(number));
  }
  const auto x = TestTensor::of<int8_t>({256}, numbers);
  const TestTensor want(ScalarType::Float, {256});
  REQUIRE(dequantize(x, want) == Error::Ok);
  const std::vector<float> floats = want.items<float>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    CHECK(orch_dequantize(numbers[i], 0.5F, 3) == floats[i]);
  }
}

TEST_CASE("cortex_m quantizes tensors that are laid out alike") {
  const Sizes sizes = {1, 2, 3, 2};
  const Order last = {0, 2, 3, 1};
  const TestTensor x(ScalarType::Float, sizes, last);
  const TestTensor out(ScalarType::Char, sizes, last);
  const TestTensor other(ScalarType::Char, sizes);
  CHECK(quantize(cortex_m::quantize_per_tensor_out, x, 1, 0, -128, 127, out) ==
        Error::Ok);
  CHECK(quantize(cortex_m::quantize_per_tensor_out, x, 1, 0, -128, 127,
                 other) == Error::NotSupported);
  CHECK(dequantize(out, x) == Error::Ok);
  CHECK(dequantize(other, x) == Error::NotSupported);
}

TEST_CASE("cortex_m quantizes Float to Char and Short only") {
  const Sizes sizes = {2};
  const TestTensor x(ScalarType::Float, sizes);
  const TestTensor half(ScalarType::Half, sizes);
  const TestTensor out(ScalarType::Char, sizes);
  const TestTensor byte(ScalarType::Byte, sizes);
  const KernelFn kernel = cortex_m::quantize_per_tensor_out;
  CHECK(quantize(kernel, half, 1, 0, -128, 127, out) == Error::InvalidArgument);
  CHECK(quantize(kernel, x, 1, 0, 0, 127, byte) == Error::DtypeNotSelected);
  CHECK(quantize(kernel, x, 1, 0, -129, 127, out) == Error::InvalidArgument);
  CHECK(quantize(kernel, x, 1, 0, 1, 0, out) == Error::NotSupported);
  CHECK(dequantize(out, half) == Error::InvalidArgument);
  CHECK(dequantize(byte, x) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
