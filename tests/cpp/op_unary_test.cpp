// abs, neg, sin, cos, sigmoid, gelu.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

constexpr float kInf = std::numeric_limits<float>::infinity();

Error unary(KernelFn kernel, const TestTensor& self, const TestTensor& out) {
  return Call().add(self).add(out).run(kernel);
}

TEST_CASE("abs and neg of the lowest integer are itself") {
  const auto x = TestTensor::of<int8_t>({3}, {-128, -1, 127});
  const TestTensor out(ScalarType::Char, {3});
  CHECK(unary(abs_out, x, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{-128, 1, 127});
  CHECK(unary(neg_out, x, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{-128, 1, -127});
  const auto y = TestTensor::of<int64_t>({1}, {INT64_MIN});
  CHECK(unary(abs_out, y, y) == Error::Ok);
  CHECK(y.items<int64_t>()[0] == INT64_MIN);
}

TEST_CASE("abs and neg of floats") {
  const auto x = TestTensor::of<float>({4}, {-0.0F, 0, -kInf, -1.5F});
  const TestTensor out(ScalarType::Float, {4});
  CHECK(unary(abs_out, x, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 0, kInf, 1.5F});
  CHECK_FALSE(std::signbit(out.items<float>()[0]));
  CHECK(unary(neg_out, x, out) == Error::Ok);
  CHECK_FALSE(std::signbit(out.items<float>()[0]));
  CHECK(std::signbit(out.items<float>()[1]));
  CHECK(unary(abs_out, x, {ScalarType::Double, {4}}) == Error::InvalidArgument);
  CHECK(unary(neg_out, x, {ScalarType::Float, {5}}) == Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {4});
  CHECK(unary(abs_out, bools, bools) == Error::DtypeNotSelected);
  CHECK(unary(neg_out, bools, bools) == Error::DtypeNotSelected);
}

TEST_CASE("sin, cos and sigmoid take integers, and give floats") {
  const auto x = TestTensor::of<int64_t>({2}, {0, 1'000'000'000});
  const TestTensor out(ScalarType::Float, {2});
  CHECK(unary(sin_out, x, out) == Error::Ok);
  CHECK(out.items<float>()[1] == doctest::Approx(0.5458434494486996));
  CHECK(unary(cos_out, x, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 1);
  CHECK(out.items<float>()[1] == doctest::Approx(0.8378871813639024));
  CHECK(unary(sigmoid_out, x, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0.5F, 1});
  const TestTensor ints(ScalarType::Long, {2});
  for (const KernelFn kernel : {sin_out, cos_out, sigmoid_out}) {
    CHECK(unary(kernel, x, ints) == Error::InvalidArgument);
    CHECK(unary(kernel, x, {ScalarType::Float, {3}}) == Error::InvalidArgument);
  }
}

TEST_CASE("sigmoid at the ends") {
  const auto x = TestTensor::of<float>({4}, {-kInf, kInf, -1000, 1000});
  const TestTensor out(ScalarType::Float, {4});
  CHECK(unary(sigmoid_out, x, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 1, 0, 1});
}

Error gelu(const TestTensor& self, const char* form, const TestTensor& out) {
  return Call().add(self).text(form).add(out).run(gelu_out);
}

TEST_CASE("gelu, exact and by tanh") {
  const auto x = TestTensor::of<double>({5}, {0, 1, -2, 40, -40});
  const TestTensor out(ScalarType::Double, {5});
  CHECK(gelu(x, "none", out) == Error::Ok);
  const auto exact = out.items<double>();
  CHECK(exact[0] == 0);
  CHECK(std::fabs(exact[1] - 0.8413447460685429) < 1e-15);
  CHECK(std::fabs(exact[2] + 0.0455002638963584) < 1e-15);
  CHECK(exact[3] == 40);
  CHECK(exact[4] == 0);
  CHECK(gelu(x, "tanh", out) == Error::Ok);
  CHECK(std::fabs(out.items<double>()[1] - 0.8411919906082768) < 1e-15);
  const auto ends = TestTensor::of<float>({1}, {kInf});
  for (const char* const form : {"none", "tanh"}) {
    CHECK(gelu(ends, form, ends) == Error::Ok);
    CHECK(ends.items<float>()[0] == kInf);
  }
  const auto one = TestTensor::of<Half>({1}, {Half(1)});
  CHECK(gelu(one, "none", one) == Error::Ok);
  CHECK(one.items<Half>()[0].bits == Half(0.84134475F).bits);
}

TEST_CASE("gelu refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2});
  CHECK(gelu(x, "", x) == Error::InvalidArgument);
  CHECK(gelu(x, "tan", x) == Error::InvalidArgument);
  CHECK(gelu(x, "none", {ScalarType::Double, {2}}) == Error::InvalidArgument);
  CHECK(gelu(x, "none", {ScalarType::Float, {3}}) == Error::InvalidArgument);
  const TestTensor ints(ScalarType::Int, {2});
  CHECK(gelu(ints, "none", ints) == Error::DtypeNotSelected);
  CHECK(x.items<uint8_t>()[0] == TestTensor::kPattern);
}

}  // namespace
}  // namespace orch::test
