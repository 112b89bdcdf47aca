#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::relu_out;

Error relu(const TestTensor& self, const TestTensor& out) {
  return Call().add(self).add(out).run(relu_out);
}

TEST_CASE("relu keeps NaN and the sign of zero") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = TestTensor::of<float>({5}, {-1, -0.0F, 2, nan, -HUGE_VALF});
  const TestTensor out(ScalarType::Float, {5});
  CHECK(relu(x, out) == Error::Ok);
  const std::vector<float> y = out.items<float>();
  CHECK(y[0] == 0);
  CHECK_FALSE(std::signbit(y[0]));
  CHECK(std::signbit(y[1]));
  CHECK(y[2] == 2);
  CHECK(std::isnan(y[3]));
  CHECK(y[4] == 0);
}

TEST_CASE("relu of integers") {
  const auto x = TestTensor::of<int8_t>({3}, {-128, 0, 127});
  const TestTensor out(ScalarType::Char, {3});
  CHECK(relu(x, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{0, 0, 127});
}

TEST_CASE("relu of dynamic tensors") {
  const auto x = TestTensor::of<float>({2}, {-1, 1});
  const auto out = TestTensor(ScalarType::Float, {5}).dynamic();
  CHECK(relu(x, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2});
}

TEST_CASE("relu refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  CHECK(relu(x, {ScalarType::Float, {3, 2}}) == Error::InvalidArgument);
  CHECK(relu(x, {ScalarType::Float, {6}}) == Error::InvalidArgument);
  CHECK(relu(x, {ScalarType::Double, {2, 3}}) == Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {2});
  CHECK(relu(bools, bools) == Error::DtypeNotSelected);
}

}  // namespace
}  // namespace orch::test
