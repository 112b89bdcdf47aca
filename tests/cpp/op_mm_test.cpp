#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::mm_out;

Error mm(const TestTensor& a, const TestTensor& b, const TestTensor& out) {
  return Call().add(a).add(b).add(out).run(mm_out);
}

TEST_CASE("mm") {
  const auto a = TestTensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto b = TestTensor::of<float>({3, 5}, {1, 0, 0, 1, 2,  //
                                                0, 1, 0, 1, 2,  //
                                                0, 0, 1, 1, 2});
  const TestTensor out(ScalarType::Float, {2, 5});
  CHECK(mm(a, b, out) == Error::Ok);
  CHECK(out.items<float>() ==
        std::vector<float>{1, 2, 3, 6, 12, 4, 5, 6, 15, 30});
}

TEST_CASE("mm over nothing is zero") {
  const TestTensor out(ScalarType::Float, {2, 1});
  CHECK(mm({ScalarType::Float, {2, 0}}, {ScalarType::Float, {0, 1}}, out) ==
        Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 0});
}

TEST_CASE("mm of halves is rounded once") {
  // 2048 + 1 + 1: a sum in half would stay at 2048.
  const auto a = TestTensor::of<Half>({1, 3}, {Half(2048), Half(1), Half(1)});
  const auto b = TestTensor::of<Half>({3, 1}, {Half(1), Half(1), Half(1)});
  const TestTensor out(ScalarType::Half, {1, 1});
  CHECK(mm(a, b, out) == Error::Ok);
  CHECK(static_cast<float>(out.items<Half>()[0]) == 2050);
}

TEST_CASE("mm gives a dynamic output its sizes") {
  const auto a = TestTensor::of<int8_t>({2, 1}, {1, -2});
  const auto b = TestTensor::of<int8_t>({1, 2}, {100, 3});
  const auto out = TestTensor(ScalarType::Char, {4, 4}).dynamic();
  CHECK(mm(a, b, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2, 2});
  CHECK(mm(a, b, TestTensor(ScalarType::Char, {1, 3}).dynamic()) ==
        Error::ShapeTooLarge);
}

TEST_CASE("mm refuses sizes and dtypes that do not fit") {
  const TestTensor a(ScalarType::Float, {2, 3});
  const TestTensor b(ScalarType::Float, {3, 4});
  const TestTensor out(ScalarType::Float, {2, 4});
  const TestTensor bools(ScalarType::Bool, {2, 2});
  CHECK(mm(a, a, out) == Error::InvalidArgument);
  CHECK(mm(a, b, {ScalarType::Float, {4, 2}}) == Error::InvalidArgument);
  CHECK(mm(a, b, {ScalarType::Double, {2, 4}}) == Error::InvalidArgument);
  CHECK(mm(a, {ScalarType::Int, {3, 4}}, out) == Error::InvalidArgument);
  CHECK(mm({ScalarType::Float, {3}}, b, out) == Error::InvalidArgument);
  CHECK(mm(a, {ScalarType::Float, {1, 3, 4}}, out) == Error::InvalidArgument);
  CHECK(mm(bools, bools, bools) == Error::DtypeNotSelected);
}

TEST_CASE("mm in place only where sizes stay") {
  const auto square = TestTensor(ScalarType::Float, {2, 2}).dynamic();
  const TestTensor narrow(ScalarType::Float, {2, 1});
  CHECK(mm(square, narrow, square) == Error::InvalidArgument);
  CHECK(square.sizes() == Sizes{2, 2});
}

}  // namespace
}  // namespace orch::test
