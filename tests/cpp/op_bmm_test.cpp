#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::bmm_out;

Error bmm(const TestTensor& a, const TestTensor& b, const TestTensor& out) {
  return Call().add(a).add(b).add(out).run(bmm_out);
}

TEST_CASE("bmm multiplies matrix by matrix") {
  const auto a = TestTensor::of<int32_t>({2, 1, 2}, {1, 2, 3, 4});
  const auto b = TestTensor::of<int32_t>({2, 2, 1}, {10, 20, 30, 40});
  const TestTensor out(ScalarType::Int, {2, 1, 1});
  CHECK(bmm(a, b, out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{50, 250});
  const auto dynamic = TestTensor(ScalarType::Int, {3, 2, 2}).dynamic();
  CHECK(bmm(a, b, dynamic) == Error::Ok);
  CHECK(dynamic.sizes() == Sizes{2, 1, 1});
}

TEST_CASE("bmm over nothing is zero, of nothing nothing") {
  const TestTensor out(ScalarType::Float, {1, 2, 1});
  CHECK(bmm({ScalarType::Float, {1, 2, 0}}, {ScalarType::Float, {1, 0, 1}},
            out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 0});
  CHECK(bmm({ScalarType::Float, {0, 2, 3}}, {ScalarType::Float, {0, 3, 1}},
            {ScalarType::Float, {0, 2, 1}}) == Error::Ok);
}

TEST_CASE("bmm refuses sizes and dtypes that do not fit") {
  const TestTensor a(ScalarType::Float, {2, 3, 4});
  const TestTensor b(ScalarType::Float, {2, 4, 5});
  const TestTensor out(ScalarType::Float, {2, 3, 5});
  CHECK(bmm(a, a, out) == Error::InvalidArgument);
  CHECK(bmm(a, {ScalarType::Float, {1, 4, 5}}, out) == Error::InvalidArgument);
  CHECK(bmm(a, {ScalarType::Float, {4, 5}}, out) == Error::InvalidArgument);
  CHECK(bmm({ScalarType::Float, {3, 4}}, b, out) == Error::InvalidArgument);
  CHECK(bmm(a, b, {ScalarType::Float, {2, 5, 3}}) == Error::InvalidArgument);
  CHECK(bmm(a, {ScalarType::Int, {2, 4, 5}}, out) == Error::InvalidArgument);
  CHECK(bmm(a, b, {ScalarType::Double, {2, 3, 5}}) == Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {2, 2, 2});
  CHECK(bmm(bools, bools, bools) == Error::DtypeNotSelected);
  const auto square = TestTensor(ScalarType::Float, {1, 2, 2}).dynamic();
  CHECK(bmm(square, {ScalarType::Float, {1, 2, 1}}, square) ==
        Error::InvalidArgument);
  CHECK(square.sizes() == Sizes{1, 2, 2});
}

}  // namespace
}  // namespace orch::test
