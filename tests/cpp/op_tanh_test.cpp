#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::tanh_out;

Error tanh(const TestTensor& self, const TestTensor& out) {
  return Call().add(self).add(out).run(tanh_out);
}

TEST_CASE("tanh of integers and truth values is floating") {
  const auto ints = TestTensor::of<int64_t>({2}, {0, INT64_MIN});
  const auto bools = TestTensor::of<bool>({2}, {false, true});
  const TestTensor floats(ScalarType::Float, {2});
  CHECK(tanh(ints, floats) == Error::Ok);
  CHECK(floats.items<float>() == std::vector<float>{0, -1});
  CHECK(tanh(bools, floats) == Error::Ok);
  CHECK(floats.items<float>()[1] == doctest::Approx(0.7615942));
  const TestTensor halves(ScalarType::Half, {2});
  CHECK(tanh(bools, halves) == Error::Ok);
  CHECK(halves.items<Half>()[1].bits == Half(0.7615942F).bits);
}

TEST_CASE("tanh between floats of different size") {
  const auto x = TestTensor::of<double>({1}, {0.5});
  const TestTensor out(ScalarType::BFloat16, {1});
  CHECK(tanh(x, out) == Error::Ok);
  CHECK(out.items<BFloat16>()[0].bits == BFloat16(0.46211716F).bits);
}

TEST_CASE("tanh refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  CHECK(tanh(x, {ScalarType::Int, {2, 3}}) == Error::InvalidArgument);
  CHECK(tanh(x, {ScalarType::Float, {3, 2}}) == Error::InvalidArgument);
  CHECK(tanh(x, {ScalarType::Double, {6}}) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
