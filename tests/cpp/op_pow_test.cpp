#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

constexpr float kInf = std::numeric_limits<float>::infinity();

Error whole_power(const TestTensor& self, int64_t exponent,
                  const TestTensor& out) {
  return Call().add(self).integer(exponent).add(out).run(pow_Tensor_Scalar_out);
}

Error power(const TestTensor& self, double exponent, const TestTensor& out) {
  return Call().add(self).number(exponent).add(out).run(pow_Tensor_Scalar_out);
}

TEST_CASE("powers of integers wrap around") {
  const auto x = TestTensor::of<int8_t>({4}, {-128, -2, 3, 100});
  const TestTensor out(ScalarType::Char, {4});
  CHECK(whole_power(x, 7, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{0, -128, -117, 0});
  CHECK(whole_power(x, 0, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, 1, 1, 1});
  const auto wide = TestTensor::of<int64_t>({2}, {3, INT64_MIN});
  CHECK(whole_power(wide, INT64_MAX, wide) == Error::Ok);
  CHECK(wide.items<int64_t>() == std::vector<int64_t>{-6148914691236517205, 0});
}

TEST_CASE("a negative power of integers is an error, one of floats is not") {
  const auto x = TestTensor::of<int32_t>({1}, {2});
  const TestTensor out(ScalarType::Float, {1});
  CHECK(whole_power(x, -1, out) == Error::InvalidArgument);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
  CHECK(power(x, -1, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 0.5F);
}

TEST_CASE("negative exponents in a tensor of integers") {
  const auto x = TestTensor::of<int32_t>({4, 1}, {-2, -1, 0, 1});
  const auto y = TestTensor::of<int32_t>({2}, {-3, -4});
  const TestTensor out(ScalarType::Int, {4, 2});
  CHECK(Call().add(x).add(y).add(out).run(pow_Tensor_Tensor_out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{0, 0, -1, 1, 0, 0, 1, 1});
  const TestTensor row(ScalarType::Int, {2});
  CHECK(Call().integer(-1).add(y).add(row).run(pow_Scalar_out) == Error::Ok);
  CHECK(row.items<int32_t>() == std::vector<int32_t>{-1, 1});
}

TEST_CASE("a power of one half is a root, except for Half") {
  const auto x = TestTensor::of<float>({2}, {-0.0F, -kInf});
  CHECK(power(x, 0.5, x) == Error::Ok);
  CHECK(std::signbit(x.items<float>()[0]));
  CHECK(std::isnan(x.items<float>()[1]));
  const auto half = TestTensor::of<Half>({2}, {Half(-0.0F), Half(-kInf)});
  CHECK(power(half, 0.5, half) == Error::Ok);
  CHECK(half.items<Half>()[0].bits == 0);
  CHECK(half.items<Half>()[1].bits == Half(kInf).bits);
}

TEST_CASE("powers of NaN and by NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = TestTensor::of<float>({2}, {nan, 1});
  const TestTensor out(ScalarType::Float, {2});
  CHECK(power(x, 0, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{1, 1});
  CHECK(power(x, nan, out) == Error::Ok);
  CHECK(std::isnan(out.items<float>()[0]));
  CHECK(out.items<float>()[1] == 1);
}

TEST_CASE("powers refuse what does not fit") {
  const TestTensor bools(ScalarType::Bool, {2});
  const TestTensor ints(ScalarType::Int, {2});
  const TestTensor floats(ScalarType::Float, {2});
  CHECK(Call().add(bools).boolean(true).add(bools).run(pow_Tensor_Scalar_out) !=
        Error::Ok);
  CHECK(Call().add(bools).add(bools).add(ints).run(pow_Tensor_Tensor_out) !=
        Error::Ok);
  CHECK(power(ints, 2, ints) == Error::InvalidArgument);
  CHECK(whole_power(floats, 2, ints) == Error::InvalidArgument);
  CHECK(Call().number(2).add(ints).add(ints).run(pow_Scalar_out) ==
        Error::InvalidArgument);
  CHECK(whole_power(floats, 2, {ScalarType::Float, {3}}) ==
        Error::InvalidArgument);
  CHECK(floats.items<uint8_t>()[0] == TestTensor::kPattern);
}

}  // namespace
}  // namespace orch::test
