// Distances between rows: _cdist_forward, _pdist_forward.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Floats = std::vector<float>;

constexpr ScalarType kFloat = ScalarType::Float;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Error cdist(const TestTensor& a, const TestTensor& b, double p, int64_t mode,
            const TestTensor& out) {
  return Call().add(a).add(b).number(p).integer(mode).add(out).run(
      _cdist_forward_out);
}

Error pdist(const TestTensor& self, double p, const TestTensor& out) {
  return Call().add(self).number(p).add(out).run(_pdist_forward_out);
}

TEST_CASE("distances of every norm, in any dim order") {
  const auto a = TestTensor::of<float>({1, 2}, {1, 5});
  const auto b = TestTensor::of<float>({2, 2}, {4, 1, 1, 6}, {1, 0});
  const TestTensor out(kFloat, {1, 2});
  CHECK(cdist(a, b, 2, 1, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{5, 1});
  CHECK(cdist(a, b, 1, 1, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{7, 1});
  CHECK(cdist(a, b, 0, 1, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{2, 1});
  CHECK(cdist(a, b, kInfinity, 1, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{4, 1});
  CHECK(cdist(a, b, 3, 1, out) == Error::Ok);
  CHECK(out.items<float>()[0] == doctest::Approx(std::cbrt(91)));
  // NaN stays, except for the largest difference in _cdist_forward.
  const auto c = TestTensor::of<float>({1, 2}, {4, std::nanf("")});
  const TestTensor one(kFloat, {1, 1});
  CHECK(cdist(a, c, kInfinity, 1, one) == Error::Ok);
  CHECK(one.items<float>() == Floats{3});
  for (const double p : {0.0, 1.0, 2.0, 3.0}) {
    CHECK(cdist(a, c, p, 1, one) == Error::Ok);
    CHECK(std::isnan(one.items<float>()[0]));
  }
  const TestTensor pair(kFloat, {1});
  CHECK(pdist(b, 2, pair) == Error::Ok);
  CHECK(pair.items<float>()[0] == doctest::Approx(std::sqrt(34)));
  const auto with_nan = TestTensor::of<float>({2, 2}, {0, 9, 0, std::nanf("")});
  CHECK(pdist(with_nan, kInfinity, pair) == Error::Ok);
  CHECK(std::isnan(pair.items<float>()[0]));
}

TEST_CASE("distances refuse what does not fit") {
  const TestTensor a(kFloat, {2, 3});
  const TestTensor out(kFloat, {2, 2});
  CHECK(cdist(a, {kFloat, {2, 2}}, 2, 0, out) == Error::InvalidArgument);
  CHECK(cdist(a, {kFloat, {3}}, 2, 0, out) == Error::InvalidArgument);
  CHECK(cdist(a, {ScalarType::Double, {2, 3}}, 2, 0, out) ==
        Error::InvalidArgument);
  CHECK(cdist({kFloat, {2, 2, 3}}, {kFloat, {3, 2, 3}}, 2, 0,
              {kFloat, {2, 2, 2}}) == Error::InvalidArgument);
  const TestTensor pair(kFloat, {1});
  for (const double p :
       {-1.0, -kInfinity, -5e-324, std::nan(""), -std::nan("")}) {
    CHECK(cdist(a, a, p, 0, out) == Error::InvalidArgument);
    CHECK(pdist(a, p, pair) == Error::InvalidArgument);
  }
  CHECK(cdist(a, a, 2, 3, out) == Error::InvalidArgument);
  CHECK(cdist(a, a, 2, -1, out) == Error::InvalidArgument);
  CHECK(pdist({kFloat, {3}}, 2, pair) == Error::InvalidArgument);
  CHECK(pdist(a, 2, {kFloat, {2}}) == Error::InvalidArgument);
  // So many distances that their number does not fit.
  CHECK(pdist({kFloat, {1 << 17, 0}}, 2, pair) == Error::ShapeTooLarge);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
}

}  // namespace
}  // namespace orch::test
