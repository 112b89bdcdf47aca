#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::_log_softmax_out;
using portable::_softmax_out;

Error softmax(const TestTensor& self, int64_t dim, const TestTensor& out,
              bool half_to_float = false) {
  return Call()
      .add(self)
      .integer(dim)
      .boolean(half_to_float)
      .add(out)
      .run(_softmax_out);
}

TEST_CASE("softmax sums to one along its dim") {
  const auto x = TestTensor::of<float>({2, 3}, {1, 2, 3, -1, 0, 1000});
  const TestTensor out(ScalarType::Float, {2, 3});
  for (const int dim : {1, -1}) {
    CHECK(softmax(x, dim, out) == Error::Ok);
    const std::vector<float> y = out.items<float>();
    CHECK(y[0] == doctest::Approx(0.0900306).epsilon(1e-6));
    CHECK(y[1] == doctest::Approx(0.2447285).epsilon(1e-6));
    CHECK(y[2] == doctest::Approx(0.6652410).epsilon(1e-6));
    CHECK(y[3] == 0);
    CHECK(y[5] == 1);
  }
  CHECK(softmax(x, 0, out) == Error::Ok);
  CHECK(out.items<float>()[2] == 0);
  CHECK(out.items<float>()[5] == 1);
}

TEST_CASE("softmax of one number, and of none") {
  const auto x = TestTensor::of<double>({}, {-7});
  const TestTensor out(ScalarType::Double, {});
  CHECK(softmax(x, 0, out) == Error::Ok);
  CHECK(softmax(x, -1, out) == Error::Ok);
  CHECK(out.items<double>()[0] == 1);
  const TestTensor empty(ScalarType::Float, {3, 0});
  for (int dim = -2; dim < 2; ++dim) {
    CHECK(softmax(empty, dim, {ScalarType::Float, {3, 0}}) == Error::Ok);
  }
}

TEST_CASE("softmax from Half to Float does not round in between") {
  const auto x = TestTensor::of<Half>({2}, {Half(0), Half(1)});
  const TestTensor out(ScalarType::Float, {2});
  CHECK(softmax(x, 0, out, true) == Error::Ok);
  CHECK(out.items<float>()[1] == doctest::Approx(0.7310586).epsilon(1e-6));
  CHECK(softmax(x, 0, out) == Error::InvalidArgument);
  CHECK(softmax(x, 0, {ScalarType::Half, {2}}, true) == Error::InvalidArgument);
  const TestTensor bf16(ScalarType::BFloat16, {2});
  CHECK(softmax(bf16, 0, out, true) == Error::InvalidArgument);
}

TEST_CASE("softmax refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(softmax(x, 2, out) == Error::InvalidArgument);
  CHECK(softmax(x, -3, out) == Error::InvalidArgument);
  CHECK(softmax(x, INT64_MIN, out) == Error::InvalidArgument);
  CHECK(softmax(x, INT64_MAX, out) == Error::InvalidArgument);
  CHECK(softmax({ScalarType::Float, {}}, 1, {ScalarType::Float, {}}) ==
        Error::InvalidArgument);
  CHECK(softmax(x, 0, {ScalarType::Float, {3, 2}}) == Error::InvalidArgument);
  CHECK(softmax(x, 0, {ScalarType::Double, {2, 3}}) == Error::InvalidArgument);
  const TestTensor ints(ScalarType::Int, {2});
  CHECK(softmax(ints, 0, ints) == Error::DtypeNotSelected);
}

TEST_CASE("log_softmax keeps numbers whose exponentials vanish") {
  const auto log_softmax = [](const TestTensor& self, const TestTensor& out,
                              bool half_to_float = false) {
    return Call()
        .add(self)
        .integer(0)
        .boolean(half_to_float)
        .add(out)
        .run(_log_softmax_out);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const auto x = TestTensor::of<float>({4}, {1e6F, 1e6F, 0, -infinity});
  const TestTensor out(ScalarType::Float, {4});
  CHECK(log_softmax(x, out) == Error::Ok);
  const float ln2 = std::log(2.0F);
  CHECK(out.items<float>() ==
        std::vector<float>{-ln2, -ln2, -1e6F - ln2, -infinity});
  const auto halves = TestTensor::of<Half>({2}, {Half(0), Half(0)});
  const TestTensor wide(ScalarType::Float, {2});
  CHECK(log_softmax(halves, wide, true) == Error::Ok);
  CHECK(wide.items<float>() == std::vector<float>{-ln2, -ln2});
  CHECK(log_softmax(halves, wide) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
