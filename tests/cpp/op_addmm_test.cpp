#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::addmm_out;

TestTensor matrix(Sizes sizes, std::vector<float> items) {
  return TestTensor::of<float>(std::move(sizes), std::move(items));
}

Error addmm(const TestTensor& self, const TestTensor& a, const TestTensor& b,
            const TestTensor& out, int beta = 1, double alpha = 1) {
  return Call()
      .add(self)
      .add(a)
      .add(b)
      .integer(beta)
      .number(alpha)
      .add(out)
      .run(addmm_out);
}

TEST_CASE("addmm broadcasts self and applies beta and alpha") {
  const auto a = matrix({2, 1}, {1, 2});
  const auto b = matrix({1, 3}, {1, 10, 100});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(addmm(matrix({3}, {1, 2, 3}), a, b, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{2, 12, 103, 3, 22, 203});
  CHECK(addmm(matrix({2, 1}, {1, 2}), a, b, out, 2, 0.5) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{2.5, 7, 52, 5, 14, 104});
  CHECK(addmm(matrix({}, {-1}), a, b, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 9, 99, 1, 19, 199});
}

TEST_CASE("addmm ignores self where beta is 0") {
  const auto nan = matrix({1}, {std::numeric_limits<float>::quiet_NaN()});
  const TestTensor out(ScalarType::Float, {1, 1});
  CHECK(addmm(nan, matrix({1, 1}, {2}), matrix({1, 1}, {3}), out, 0) ==
        Error::Ok);
  CHECK(out.items<float>()[0] == 6);
}

TEST_CASE("addmm of integers truncates beta and alpha") {
  const auto one = TestTensor::of<int32_t>({1, 1}, {1});
  const TestTensor out(ScalarType::Int, {1, 1});
  CHECK(addmm(one, one, one, out, 1, 2.9) == Error::Ok);
  CHECK(out.items<int32_t>()[0] == 3);
  CHECK(addmm(one, one, one, out, 1, 1e300) == Error::Ok);
}

TEST_CASE("addmm refuses what does not fit") {
  const TestTensor a(ScalarType::Float, {2, 3});
  const TestTensor b(ScalarType::Float, {3, 4});
  const TestTensor out(ScalarType::Float, {2, 4});
  const TestTensor row(ScalarType::Float, {4});
  CHECK(addmm({ScalarType::Float, {3}}, a, b, out) == Error::InvalidArgument);
  CHECK(addmm({ScalarType::Float, {0}}, a, b, out) == Error::InvalidArgument);
  CHECK(addmm({ScalarType::Float, {4, 4}}, a, b, out) ==
        Error::InvalidArgument);
  CHECK(addmm({ScalarType::Float, {1, 1, 4}}, a, b, out) ==
        Error::InvalidArgument);
  CHECK(addmm({ScalarType::Int, {4}}, a, b, out) == Error::InvalidArgument);
  CHECK(addmm(row, a, a, out) == Error::InvalidArgument);
  CHECK(addmm(row, a, b, {ScalarType::Float, {2, 3}}) ==
        Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {1, 1});
  CHECK(addmm(bools, bools, bools, bools) == Error::DtypeNotSelected);
}

TEST_CASE("addmm does not let its bias change under it") {
  // The output would shrink the bias that was found to be broadcastable.
  const auto self = TestTensor(ScalarType::Float, {2, 4}).dynamic();
  const TestTensor a(ScalarType::Float, {1, 3});
  const TestTensor b(ScalarType::Float, {3, 4});
  CHECK(addmm(self, a, b, self) == Error::InvalidArgument);
  CHECK(self.sizes() == Sizes{2, 4});
}

}  // namespace
}  // namespace orch::test
