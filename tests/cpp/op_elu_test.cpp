// elu, leaky_relu, logit, and functions that are defined by a formula: rsqrt,
// reciprocal.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Error elu(const TestTensor& self, double alpha, double scale,
          double input_scale, const TestTensor& out) {
  return Call()
      .add(self)
      .number(alpha)
      .number(scale)
      .number(input_scale)
      .add(out)
      .run(elu_out);
}

TEST_CASE("elu keeps the sign of zero, and NaN") {
  const auto x = TestTensor::of<float>({5}, {-0.0F, -kInf, 2, kNaN, -1e-30F});
  const TestTensor out(ScalarType::Float, {5});
  CHECK(elu(x, 1.5, 2, 1, out) == Error::Ok);
  const auto items = out.items<float>();
  CHECK((items[0] == 0 && std::signbit(items[0])));
  CHECK(items[1] == -3);
  CHECK(items[2] == 4);
  CHECK(std::isnan(items[3]));
  CHECK(items[4] == doctest::Approx(-3e-30F));
  const TestTensor ints(ScalarType::Int, {5});
  CHECK(elu(ints, 1, 1, 1, ints) == Error::DtypeNotSelected);
  CHECK(elu(x, 1, 1, 1, {ScalarType::Half, {5}}) == Error::InvalidArgument);
}

TEST_CASE("leaky_relu multiplies everything that is not above 0") {
  const auto x = TestTensor::of<float>({4}, {-2, 0, kNaN, kInf});
  const TestTensor out(ScalarType::Float, {4});
  CHECK(Call().add(x).number(-0.5).add(out).run(leaky_relu_out) == Error::Ok);
  const auto items = out.items<float>();
  CHECK(items[0] == 1);
  CHECK(std::signbit(items[1]));
  CHECK(std::isnan(items[2]));
  CHECK(items[3] == kInf);
}

TEST_CASE("logit, with and without limits") {
  const auto x = TestTensor::of<float>({5}, {0, 0.5F, 1, 2, kNaN});
  const TestTensor out(ScalarType::Float, {5});
  CHECK(Call().add(x).none().add(out).run(logit_out) == Error::Ok);
  auto items = out.items<float>();
  CHECK(items[0] == -kInf);
  CHECK(items[1] == 0);
  CHECK(items[2] == kInf);
  CHECK(std::isnan(items[3]));
  CHECK(Call().add(x).number(0.25).add(out).run(logit_out) == Error::Ok);
  items = out.items<float>();
  CHECK(items[0] == doctest::Approx(-1.0986123));
  CHECK(items[3] == doctest::Approx(1.0986123));
  CHECK(std::isnan(items[4]));
  CHECK(Call().add(x).number(-1).add(out).run(logit_out) == Error::Ok);
  CHECK(std::isnan(out.items<float>()[3]));
  const auto flags = TestTensor::of<bool>({5}, {true, false, true, true, true});
  CHECK(Call().add(flags).none().add(out).run(logit_out) == Error::Ok);
  CHECK(out.items<float>()[1] == -kInf);
  CHECK(Call().add(x).none().add(flags).run(logit_out) ==
        Error::InvalidArgument);
}

TEST_CASE("reciprocal and rsqrt of zeros and infinity") {
  const auto x = TestTensor::of<float>({4}, {-0.0F, 0, -kInf, kInf});
  const TestTensor out(ScalarType::Float, {4});
  CHECK(Call().add(x).add(out).run(reciprocal_out) == Error::Ok);
  auto items = out.items<float>();
  CHECK(items[0] == -kInf);
  CHECK(items[1] == kInf);
  CHECK((items[2] == 0 && std::signbit(items[2])));
  CHECK(Call().add(x).add(out).run(rsqrt_out) == Error::Ok);
  items = out.items<float>();
  CHECK(items[0] == -kInf);
  CHECK(items[1] == kInf);
  CHECK(std::isnan(items[2]));
  CHECK(items[3] == 0);
}

}  // namespace
}  // namespace orch::test
