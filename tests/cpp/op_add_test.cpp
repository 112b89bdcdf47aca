#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::add_out;

Error add(const TestTensor& a, const TestTensor& b, const TestTensor& out) {
  return Call().add(a).add(b).integer(1).add(out).run(add_out);
}

TEST_CASE("add broadcasts") {
  const auto a = TestTensor::of<float>({2, 1}, {1, 2});
  const auto b = TestTensor::of<float>({3}, {10, 20, 30});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(Call().add(a).add(b).number(0.5).add(out).run(add_out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{6, 11, 16, 7, 12, 17});
}

TEST_CASE("add follows the dim order of each tensor") {
  const auto a = TestTensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto b =
      TestTensor::of<int32_t>({2, 3}, {10, 40, 20, 50, 30, 60}, {1, 0});
  const TestTensor rows(ScalarType::Int, {2, 3});
  const TestTensor columns(ScalarType::Int, {2, 3}, {1, 0});
  CHECK(add(a, b, rows) == Error::Ok);
  CHECK(add(b, a, columns) == Error::Ok);
  CHECK(rows.items<int32_t>() == std::vector<int32_t>{11, 22, 33, 44, 55, 66});
  CHECK(columns.items<int32_t>() ==
        std::vector<int32_t>{11, 44, 22, 55, 33, 66});
}

TEST_CASE("add of integers wraps around") {
  const auto a = TestTensor::of<int64_t>({1}, {INT64_MAX});
  const auto b = TestTensor::of<int64_t>({1}, {INT64_MAX});
  const TestTensor out(ScalarType::Long, {1});
  CHECK(add(a, b, out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == -2);
  CHECK(Call().add(a).add(b).integer(INT64_MIN).add(out).run(add_out) ==
        Error::Ok);
  CHECK(out.items<int64_t>()[0] == -1);  // max + min * max, modulo 2^64
}

TEST_CASE("add of tensors without items") {
  const TestTensor none(ScalarType::Float, {0, 3});
  const TestTensor row(ScalarType::Float, {1, 3});
  const TestTensor scalar(ScalarType::Float, {});
  const TestTensor out(ScalarType::Float, {0, 3});
  CHECK(add(none, row, out) == Error::Ok);
  CHECK(add(scalar, none, out) == Error::Ok);
  CHECK(add(none, {ScalarType::Float, {2, 3}}, out) == Error::InvalidArgument);
}

TEST_CASE("add gives a dynamic output its sizes") {
  const auto a = TestTensor::of<uint8_t>({2, 2}, {1, 2, 3, 4});
  const auto b = TestTensor::of<uint8_t>({}, {100});
  const auto out = TestTensor(ScalarType::Byte, {3, 3}).dynamic();
  CHECK(add(a, b, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2, 2});
  const auto small = TestTensor(ScalarType::Byte, {1, 3}).dynamic();
  CHECK(add(a, b, small) == Error::ShapeTooLarge);
  CHECK(small.sizes() == Sizes{1, 3});
}

TEST_CASE("add in place, and not if that would change the sizes") {
  const auto a = TestTensor::of<float>({2}, {1, 2});
  const auto b = TestTensor::of<float>({2}, {10, 20});
  CHECK(add(a, b, a) == Error::Ok);
  CHECK(a.items<float>() == std::vector<float>{11, 22});
  const auto grows = TestTensor(ScalarType::Float, {4}).dynamic();
  Sizes one = {1};
  Tensor t = grows.tensor();
  REQUIRE(resize(t, {one.data(), 1}) == Error::Ok);
  CHECK(add(grows, b, grows) == Error::InvalidArgument);
  CHECK(grows.sizes() == Sizes{1});
}

TEST_CASE("add promotes dtypes") {
  const auto bytes = TestTensor::of<uint8_t>({2}, {200, 1});
  const auto chars = TestTensor::of<int8_t>({2}, {100, -2});
  const TestTensor shorts(ScalarType::Short, {2});
  CHECK(add(bytes, chars, shorts) == Error::Ok);
  CHECK(shorts.items<int16_t>() == std::vector<int16_t>{300, -1});
  // The sum is made in Byte even where the output is wider.
  const TestTensor wide(ScalarType::Int, {2});
  CHECK(add(bytes, bytes, wide) == Error::Ok);
  CHECK(wide.items<int32_t>() == std::vector<int32_t>{144, 2});
  // A tensor without dimensions does not widen, unless its category is higher.
  const auto number = TestTensor::of<int64_t>({}, {1000});
  const TestTensor same(ScalarType::Byte, {2});
  CHECK(add(bytes, number, same) == Error::Ok);
  CHECK(same.items<uint8_t>() == std::vector<uint8_t>{176, 233});
  const auto half = TestTensor::of<double>({}, {0.5});
  const TestTensor doubles(ScalarType::Double, {2});
  CHECK(add(bytes, half, doubles) == Error::Ok);
  CHECK(doubles.items<double>() == std::vector<double>{200.5, 1.5});
}

TEST_CASE("add refuses what PyTorch refuses") {
  const auto ints = TestTensor::of<int32_t>({2}, {1, 2});
  const auto floats = TestTensor::of<float>({2}, {1, 2});
  const auto bools = TestTensor::of<bool>({2}, {true, false});
  const TestTensor out(ScalarType::Int, {2});
  CHECK(add(ints, floats, out) == Error::InvalidArgument);
  CHECK(add(ints, ints, bools) == Error::InvalidArgument);
  CHECK(Call().add(ints).add(ints).number(1).add(out).run(add_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(ints).add(bools).number(1).add(out).run(add_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(ints).add(ints).boolean(true).add(out).run(add_out) ==
        Error::InvalidArgument);
  CHECK(add(ints, {ScalarType::Int, {3}}, out) == Error::InvalidArgument);
  CHECK(add(ints, ints, {ScalarType::Int, {1, 2}}) == Error::InvalidArgument);
  CHECK(add(ints, ints, {ScalarType::Int, {3}}) == Error::InvalidArgument);
  const TestTensor unsigned_ints(ScalarType::UInt16, {2});
  CHECK(add(unsigned_ints, unsigned_ints, unsigned_ints) ==
        Error::DtypeNotSelected);
  CHECK(add(unsigned_ints, ints, ints) == Error::DtypeNotSelected);
}

}  // namespace
}  // namespace orch::test
