// sub, mul, div, maximum, minimum, remainder, fmod: what recorded calls cannot
// show.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

constexpr float kInf = std::numeric_limits<float>::infinity();

Error binary(KernelFn kernel, const TestTensor& a, const TestTensor& b,
             const TestTensor& out) {
  return Call().add(a).add(b).add(out).run(kernel);
}

Error divide(const TestTensor& a, const TestTensor& b, const char* mode,
             const TestTensor& out) {
  return Call().add(a).add(b).text(mode).add(out).run(div_out_mode);
}

Error mod(KernelFn kernel, const TestTensor& a, int64_t b,
          const TestTensor& out) {
  return Call().add(a).integer(b).add(out).run(kernel);
}

TEST_CASE("sub takes alpha times the second away") {
  const auto a = TestTensor::of<float>({2, 1}, {1, 2});
  const auto b = TestTensor::of<float>({3}, {10, 20, 30});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(Call().add(a).add(b).number(0.5).add(out).run(sub_out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-4, -9, -14, -3, -8, -13});
}

TEST_CASE("sub refuses truth values and factors of another kind") {
  const auto ints = TestTensor::of<int32_t>({1}, {1});
  const auto bools = TestTensor::of<bool>({1}, {true});
  const TestTensor out(ScalarType::Int, {1});
  CHECK(Call().add(bools).add(bools).integer(1).add(bools).run(sub_out) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(ints).add(bools).integer(1).add(out).run(sub_out) ==
        Error::DtypeNotSelected);
  CHECK(Call().add(ints).add(ints).number(1).add(out).run(sub_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(ints).add(ints).boolean(true).add(out).run(sub_out) ==
        Error::InvalidArgument);
}

TEST_CASE("integers wrap around") {
  const auto low = TestTensor::of<int64_t>({1}, {INT64_MIN});
  const auto one = TestTensor::of<int64_t>({1}, {1});
  const TestTensor out(ScalarType::Long, {1});
  CHECK(Call().add(low).add(one).integer(1).add(out).run(sub_out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == INT64_MAX);
  CHECK(binary(mul_out, low, low, out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == 0);
  const auto shorts = TestTensor::of<uint16_t>({1}, {1});
  CHECK(binary(mul_out, shorts, shorts, shorts) == Error::DtypeNotSelected);
  const auto chars = TestTensor::of<int8_t>({1}, {-128});
  CHECK(binary(mul_out, chars, chars, chars) == Error::Ok);
  CHECK(chars.items<int8_t>()[0] == 0);
}

TEST_CASE("an output of a lower category is refused, and sizes that differ") {
  const auto ints = TestTensor::of<int32_t>({2}, {1, 2});
  const auto floats = TestTensor::of<float>({2}, {1, 2});
  for (const KernelFn kernel : {mul_out, div_out, maximum_out, minimum_out}) {
    CHECK(binary(kernel, ints, floats, ints) == Error::InvalidArgument);
    CHECK(binary(kernel, floats, {ScalarType::Float, {3}}, floats) ==
          Error::InvalidArgument);
    CHECK(binary(kernel, floats, floats, {ScalarType::Float, {3}}) ==
          Error::InvalidArgument);
  }
}

TEST_CASE("an output of dynamic sizes gets them") {
  const auto a = TestTensor::of<float>({2, 1}, {1, 2});
  const auto b = TestTensor::of<float>({2}, {3, 5});
  const auto out = TestTensor(ScalarType::Float, {3, 3}).dynamic();
  CHECK(binary(mul_out, a, b, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2, 2});
  const auto small = TestTensor(ScalarType::Float, {1, 3}).dynamic();
  CHECK(binary(mul_out, a, b, small) == Error::ShapeTooLarge);
}

TEST_CASE("div of integers is a float") {
  const auto a = TestTensor::of<int32_t>({3}, {7, -1, 0});
  const auto b = TestTensor::of<int32_t>({3}, {2, 0, 0});
  const TestTensor out(ScalarType::Float, {3});
  CHECK(binary(div_out, a, b, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 3.5F);
  CHECK(out.items<float>()[1] == -kInf);
  CHECK(std::isnan(out.items<float>()[2]));
}

TEST_CASE("div rounds as asked") {
  const auto a = TestTensor::of<int32_t>({4}, {7, -7, 7, -7});
  const auto b = TestTensor::of<int32_t>({4}, {2, 2, -2, -2});
  const TestTensor out(ScalarType::Int, {4});
  CHECK(divide(a, b, "floor", out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{3, -4, -4, 3});
  CHECK(divide(a, b, "trunc", out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{3, -3, -3, 3});
  for (const char* mode : {"", "floo", "floors", "round"}) {
    CHECK(divide(a, b, mode, out) == Error::InvalidArgument);
  }
}

TEST_CASE("the lowest integer divided by -1 wraps around") {
  const auto a = TestTensor::of<int64_t>({1}, {INT64_MIN});
  const auto b = TestTensor::of<int64_t>({1}, {-1});
  const TestTensor out(ScalarType::Long, {1});
  CHECK(divide(a, b, "floor", out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == INT64_MIN);
  CHECK(divide(a, b, "trunc", out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == INT64_MIN);
  CHECK(mod(remainder_Scalar_out, a, -1, out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == 0);
  CHECK(mod(fmod_Scalar_out, a, -1, out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == 0);
  const auto bytes = TestTensor::of<uint8_t>({2}, {255, 254});
  CHECK(mod(remainder_Scalar_out, bytes, 255, bytes) == Error::Ok);
  CHECK(bytes.items<uint8_t>() == std::vector<uint8_t>{0, 254});
}

TEST_CASE("an integer divided by 0 is refused, and nothing is written") {
  const auto a = TestTensor::of<int32_t>({2}, {7, 8});
  const auto b = TestTensor::of<int32_t>({2}, {2, 0});
  const TestTensor out(ScalarType::Int, {2});
  CHECK(divide(a, b, "floor", out) == Error::InvalidArgument);
  CHECK(mod(remainder_Scalar_out, a, 0, out) == Error::InvalidArgument);
  CHECK(mod(fmod_Scalar_out, a, 0, out) == Error::InvalidArgument);
  // As a Byte, 256 is 0.
  const auto bytes = TestTensor::of<uint8_t>({1}, {7});
  const auto wide = TestTensor::of<int64_t>({}, {256});
  CHECK(mod(remainder_Scalar_out, bytes, 256, bytes) == Error::InvalidArgument);
  CHECK(divide(bytes, wide, "trunc", bytes) == Error::InvalidArgument);
  for (size_t i = 0; i < out.bytes(); ++i) {
    CHECK(out.data()[i] == TestTensor::kPattern);
  }
  CHECK(bytes.items<uint8_t>()[0] == 7);
  const TestTensor none(ScalarType::Int, {0});
  CHECK(mod(remainder_Scalar_out, none, 0, none) == Error::Ok);
}

TEST_CASE("remainders of floats") {
  const auto a = TestTensor::of<float>({6}, {5, -5, 0.3F, kInf, -0.0F, -1e20F});
  const TestTensor out(ScalarType::Float, {6});
  CHECK(mod(remainder_Scalar_out, a, 3, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 2);
  CHECK(out.items<float>()[1] == 1);
  CHECK(out.items<float>()[2] == 0.3F);
  CHECK(std::isnan(out.items<float>()[3]));
  CHECK(std::signbit(out.items<float>()[4]));
  CHECK(out.items<float>()[5] == 3 + std::fmod(-1e20F, 3.0F));
  CHECK(mod(fmod_Scalar_out, a, -3, out) == Error::Ok);
  CHECK(out.items<float>()[1] == -2);
  CHECK(out.items<float>()[5] == std::fmod(-1e20F, 3.0F));
  CHECK(mod(fmod_Scalar_out, a, 0, out) == Error::Ok);
  for (const float item : out.items<float>()) CHECK(std::isnan(item));
}

TEST_CASE_TEMPLATE("fmod is C's for numbers of every size", F, float, double) {
  using Limits = std::numeric_limits<F>;
  const F tiny = Limits::denorm_min();
  const std::vector<F> numbers = {
      tiny,    3 * tiny, Limits::min(),    Limits::min() / 4, F(0.1),
      F(1),    F(1.5),   F(1e10),          Limits::max() / 3, Limits::max(),
      F(-0.7), F(-1e-9), Limits::epsilon()};
  const auto count = static_cast<int32_t>(numbers.size());
  const auto a = TestTensor::of<F>({count}, numbers);
  const TestTensor out(DtypeOf<F>::value, {count});
  for (const F b : numbers) {
    REQUIRE(Call()
                .add(a)
                .number(static_cast<double>(b))
                .add(out)
                .run(fmod_Scalar_out) == Error::Ok);
    for (size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(numbers[i]);
      CAPTURE(b);
      CHECK(out.items<F>()[i] == std::fmod(numbers[i], b));
    }
  }
}

TEST_CASE("NaN wins in maximum and minimum") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto a = TestTensor::of<float>({3}, {nan, 1, -kInf});
  const auto b = TestTensor::of<float>({3}, {1, nan, kInf});
  const TestTensor out(ScalarType::Float, {3});
  for (const KernelFn kernel : {maximum_out, minimum_out}) {
    CHECK(binary(kernel, a, b, out) == Error::Ok);
    CHECK(std::isnan(out.items<float>()[0]));
    CHECK(std::isnan(out.items<float>()[1]));
  }
  CHECK(out.items<float>()[2] == -kInf);
}

}  // namespace
}  // namespace orch::test
