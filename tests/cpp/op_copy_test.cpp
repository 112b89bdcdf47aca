// Copies, fills and ranges.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

Error copy_to(const TestTensor& to, const TestTensor& from) {
  return Call().add(to).add(from).boolean(false).run(copy_);
}

/// With dim_order None.
Error convert(const TestTensor& from, const TestTensor& to) {
  return Call().add(from).boolean(false).none().add(to).run(
      _to_dim_order_copy_out);
}

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& items) {
  const auto count = static_cast<int32_t>(items.size());
  const TestTensor out(DtypeOf<To>::value, {count});
  CHECK(convert(TestTensor::of<From>({count}, items), out) == Error::Ok);
  return out.items<To>();
}

TEST_CASE("floats become integers by dropping the fraction") {
  const std::vector<float> x = {1.9F, -1.9F, -0.5F, 127.99F, -128};
  CHECK(converted<int8_t>(x) == std::vector<int8_t>{1, -1, 0, 127, -128});
  CHECK(converted<int64_t>(x) == std::vector<int64_t>{1, -1, 0, 127, -128});
  const std::vector<double> y = {0x1p53, -0x1p62, 4294967295.5, 0.999};
  CHECK(converted<int64_t>(y) ==
        std::vector<int64_t>{1LL << 53, -(1LL << 62), 4294967295, 0});
  const std::vector<float> z = {0x1p40F, 8388607.5F, 0x1p24F};
  CHECK(converted<int64_t>(z) ==
        std::vector<int64_t>{1LL << 40, 8388607, 1 << 24});
}

TEST_CASE("floats out of range give the same on every target") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {inf, -inf, nan, 1e30F, -0x1p31F, 0x1p31F};
  const int32_t high = INT32_MAX;
  const int32_t low = INT32_MIN;
  CHECK(converted<int32_t>(x) ==
        std::vector<int32_t>{high, low, 0, high, low, high});
  CHECK(converted<int64_t>(x) == std::vector<int64_t>{INT64_MAX, INT64_MIN, 0,
                                                      INT64_MAX, low,
                                                      1LL << 31});
  CHECK(converted<int64_t>(std::vector<double>{0x1p63, -0x1p63, -0x1p64}) ==
        std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MIN});
  // Narrower integers wrap around, as PyTorch's do.
  const std::vector<float> y = {300, -1, 65535, nan};
  CHECK(converted<uint8_t>(y) == std::vector<uint8_t>{44, 255, 255, 0});
  CHECK(converted<int16_t>(y) == std::vector<int16_t>{300, -1, -1, 0});
  CHECK(converted<bool>(y) == std::vector<bool>{true, true, true, true});
}

TEST_CASE("integers and truth values") {
  const std::vector<int64_t> x = {0, -1, 256, INT64_MIN};
  CHECK(converted<bool>(x) == std::vector<bool>{false, true, true, true});
  CHECK(converted<uint8_t>(x) == std::vector<uint8_t>{0, 255, 0, 0});
  CHECK(converted<float>(x) == std::vector<float>{0, -1, 256, -0x1p63F});
  CHECK(converted<double>(std::vector<bool>{false, true}) ==
        std::vector<double>{0, 1});
  const std::vector<uint64_t> y = converted<uint64_t>(x);
  CHECK(y == std::vector<uint64_t>{0, UINT64_MAX, 256, 1ULL << 63});
}

TEST_CASE("a copy has the dim order that it says") {
  const auto rows = TestTensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor columns(ScalarType::Short, {2, 3}, {1, 0});
  const auto copy = [&](const TestTensor& from, const TestTensor& to,
                        const std::vector<int64_t>& order, KernelFn kernel) {
    return Call().add(from).boolean(false).ints(order).add(to).run(kernel);
  };
  CHECK(copy(rows, columns, {1, 0}, _to_dim_order_copy_out) == Error::Ok);
  CHECK(columns.items<int16_t>() == std::vector<int16_t>{1, 4, 2, 5, 3, 6});
  CHECK(copy(rows, columns, {0, 1}, _to_dim_order_copy_out) ==
        Error::InvalidArgument);
  CHECK(copy(rows, columns, {1}, _to_dim_order_copy_out) ==
        Error::InvalidArgument);
  CHECK(convert(rows, columns) == Error::InvalidArgument);  // that of rows

  const TestTensor clone(ScalarType::Int, {2, 3}, {1, 0});
  CHECK(copy(rows, clone, {1, 0}, _clone_dim_order_out) == Error::Ok);
  CHECK(clone.items<int32_t>() == std::vector<int32_t>{1, 4, 2, 5, 3, 6});
  CHECK(copy(rows, clone, {0, 1}, _clone_dim_order_out) ==
        Error::InvalidArgument);
  CHECK(copy(rows, columns, {1, 0}, _clone_dim_order_out) ==
        Error::InvalidArgument);
  CHECK(copy(rows, {ScalarType::Int, {3, 2}}, {0, 1}, _clone_dim_order_out) ==
        Error::InvalidArgument);
}

TEST_CASE("a copy of a dynamic tensor gets its sizes") {
  const auto x = TestTensor::of<float>({2}, {1, 2});
  const auto out = TestTensor(ScalarType::Int, {5}).dynamic();
  CHECK(convert(x, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2});
  CHECK(convert(x, TestTensor(ScalarType::Int, {1}).dynamic()) ==
        Error::ShapeTooLarge);
}

TEST_CASE("copy_ broadcasts to the tensor that it changes") {
  const TestTensor to(ScalarType::Int, {2, 3}, {1, 0});
  const auto row = TestTensor::of<float>({3}, {1.5F, 2.5F, 3.5F});
  CHECK(copy_to(to, row) == Error::Ok);
  CHECK(to.items<int32_t>() == std::vector<int32_t>{1, 1, 2, 2, 3, 3});
  CHECK(copy_to(to, TestTensor::of<bool>({}, {true})) == Error::Ok);
  CHECK(to.items<int32_t>() == std::vector<int32_t>(6, 1));
  CHECK(copy_to(to, to) == Error::Ok);
  CHECK(copy_to(to, {ScalarType::Int, {2}}) == Error::InvalidArgument);
  CHECK(copy_to(to, {ScalarType::Int, {1, 2, 3}}) == Error::InvalidArgument);
  CHECK(copy_to({ScalarType::Int, {1}}, {ScalarType::Int, {2}}) ==
        Error::InvalidArgument);
  // A tensor of dynamic sizes keeps them.
  const auto grows = TestTensor(ScalarType::Int, {3}).dynamic();
  CHECK(copy_to(grows, {ScalarType::Int, {2}}) == Error::InvalidArgument);
}

TEST_CASE("full and scalar_tensor") {
  const TestTensor out(ScalarType::Int, {2, 2});
  CHECK(Call().ints({2, 2}).number(-2.9).add(out).run(full_out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>(4, -2));
  for (const std::vector<int64_t>& size :
       {std::vector<int64_t>{4}, {2, 3}, {2, -2}, {2, int64_t{1} << 40}}) {
    CHECK(Call().ints(size).integer(0).add(out).run(full_out) ==
          Error::InvalidArgument);
  }
  const auto grows = TestTensor(ScalarType::Float, {3, 3}).dynamic();
  CHECK(Call().ints({1, 2}).integer(7).add(grows).run(full_out) == Error::Ok);
  CHECK(grows.sizes() == Sizes{1, 2});
  CHECK(Call().ints({10, 2}).integer(7).add(grows).run(full_out) ==
        Error::ShapeTooLarge);

  const TestTensor one(ScalarType::Bool, {});
  CHECK(Call().number(0.5).add(one).run(scalar_tensor_out) == Error::Ok);
  CHECK(one.items<bool>()[0]);
  CHECK(Call().integer(0).add(out).run(scalar_tensor_out) ==
        Error::InvalidArgument);
  CHECK(
      Call().integer(0).add({ScalarType::UInt16, {}}).run(scalar_tensor_out) ==
      Error::DtypeNotSelected);
}

Error arange(const TestTensor& out, int64_t start, int64_t end, int64_t step) {
  return Call().integer(start).integer(end).integer(step).add(out).run(
      arange_start_out);
}

TEST_CASE("arange") {
  const TestTensor out(ScalarType::Short, {3});
  CHECK(arange(out, 7, 0, -3) == Error::Ok);
  CHECK(out.items<int16_t>() == std::vector<int16_t>{7, 4, 1});
  CHECK(arange(out, 0, 9, 3) == Error::Ok);
  for (const int64_t step : {0, -1, 5}) {
    CHECK(arange(out, 0, 9, step) == Error::InvalidArgument);
  }
  CHECK(arange(out, 9, 0, 3) == Error::InvalidArgument);
  CHECK(arange({ScalarType::Bool, {3}}, 0, 3, 1) == Error::DtypeNotSelected);
  const auto grows = TestTensor(ScalarType::Long, {4}).dynamic();
  CHECK(arange(grows, INT64_MIN, INT64_MAX, INT64_MAX) == Error::Ok);
  CHECK(grows.items<int64_t>()[2] == INT64_MAX - 1);
  CHECK(grows.sizes() == Sizes{3});
  CHECK(arange(grows, INT64_MIN, INT64_MAX, 1) == Error::ShapeTooLarge);
  CHECK(arange(grows, 0, 5, 1) == Error::ShapeTooLarge);
  CHECK(arange(grows, 5, 5, 1) == Error::Ok);
  CHECK(grows.sizes() == Sizes{0});
}

TEST_CASE("arange of floats into integers") {
  const auto run = [](double start, double end, double step,
                      const TestTensor& out) {
    return Call().number(start).number(end).number(step).add(out).run(
        arange_start_out);
  };
  const TestTensor shorts(ScalarType::Short, {6});
  CHECK(run(0, 3, 0.5, shorts) == Error::Ok);
  CHECK(shorts.items<int16_t>() == std::vector<int16_t>(6, 0));
  CHECK(run(0, 5.5, 1, {ScalarType::Long, {5}}) == Error::Ok);
  CHECK(run(0, 5.5, 1, shorts) == Error::Ok);
  CHECK(run(0, 3, 0.5, {ScalarType::Long, {6}}) == Error::InvalidArgument);
  CHECK(run(1e30, 2e30, 1e30, {ScalarType::Byte, {1}}) ==
        Error::InvalidArgument);
  CHECK(run(0, 1, std::numeric_limits<double>::infinity(),
            {ScalarType::Byte, {1}}) == Error::InvalidArgument);
}

TEST_CASE("arange of floats") {
  const auto out = TestTensor(ScalarType::Float, {4}).dynamic();
  const auto run = [&](double start, double end, double step) {
    return Call().number(start).number(end).number(step).add(out).run(
        arange_start_out);
  };
  CHECK(run(0.5, 1.5, 0.4) == Error::Ok);
  CHECK(out.sizes() == Sizes{3});
  CHECK(out.items<float>()[2] == static_cast<float>(0.5 + 2 * 0.4));
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(run(0, inf, 1) == Error::InvalidArgument);
  CHECK(run(nan, 1, 1) == Error::InvalidArgument);
  CHECK(run(0, 1, nan) == Error::InvalidArgument);
  CHECK(run(0, 1, -1) == Error::InvalidArgument);
  CHECK(run(0, 1, 1e-300) == Error::ShapeTooLarge);
}

}  // namespace
}  // namespace orch::test
