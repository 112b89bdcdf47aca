// Items in order: sort, topk, median.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Error sort(const TestTensor& self, int64_t dim, bool descending,
           const TestTensor& values, const TestTensor& indices) {
  return Call()
      .add(self)
      .none()
      .integer(dim)
      .boolean(descending)
      .add(values)
      .add(indices)
      .run(sort_values_stable);
}

Error topk(const TestTensor& self, int64_t k, int64_t dim, bool largest,
           const TestTensor& values, const TestTensor& indices) {
  return Call()
      .add(self)
      .integer(k)
      .integer(dim)
      .boolean(largest)
      .boolean(false)
      .add(values)
      .add(indices)
      .run(topk_values);
}

Error median(const TestTensor& self, int64_t dim, const TestTensor& values,
             const TestTensor& indices) {
  return Call()
      .add(self)
      .integer(dim)
      .boolean(false)
      .add(values)
      .add(indices)
      .run(median_dim_values);
}

/// Whether `a` comes before `b`; NaN is above all numbers.
bool comes_before(float a, float b, bool descending) {
  if (descending) std::swap(a, b);
  return a < b || (std::isnan(b) && !std::isnan(a));
}

TEST_CASE("sort and topk keep the order of equal items, as a stable sort") {
  std::mt19937 random(1);  // NOLINT: the same numbers every time
  for (int32_t size = 1; size < 70; ++size) {
    Floats items;
    for (int32_t i = 0; i < size; ++i) {
      const auto number = static_cast<int>(random() % 9);
      items.push_back(number == 8 ? kNan : static_cast<float>(number) - 4);
      if (number == 4 && random() % 2 != 0) items.back() = -0.0F;
    }
    const auto x = TestTensor::of<float>({size}, items);
    for (const bool descending : {false, true}) {
      Ints expected;
      for (int32_t i = 0; i < size; ++i) expected.push_back(i);
      std::stable_sort(
          expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
            return comes_before(items[static_cast<size_t>(a)],
                                items[static_cast<size_t>(b)], descending);
          });
      const TestTensor values(ScalarType::Float, {size});
      const TestTensor indices(ScalarType::Long, {size});
      CHECK(sort(x, 0, descending, values, indices) == Error::Ok);
      CHECK(indices.items<int64_t>() == expected);
      const auto found = values.items<uint32_t>();
      const auto bits = x.items<uint32_t>();
      for (size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i] == bits[static_cast<size_t>(expected[i])]);
      }
      const int32_t k = (size + 2) / 3;
      const TestTensor first(ScalarType::Float, {k});
      const TestTensor places(ScalarType::Long, {k});
      CHECK(topk(x, k, -1, descending, first, places) == Error::Ok);
      CHECK(places.items<int64_t>() ==
            Ints(expected.begin(), expected.begin() + k));
    }
  }
}

TEST_CASE("sort and topk along any dimension, in any dim order") {
  const auto x = TestTensor::of<int8_t>({2, 3}, {3, 5, 1, -2, 2, 5}, {1, 0});
  // 3 1 2 | 5 -2 5
  const TestTensor values(ScalarType::Char, {2, 3});
  const TestTensor indices(ScalarType::Long, {2, 3}, {1, 0});
  CHECK(sort(x, 1, true, values, indices) == Error::Ok);
  CHECK(values.items<int8_t>() == std::vector<int8_t>{3, 2, 1, 5, 5, -2});
  CHECK(indices.items<int64_t>() == Ints{0, 0, 2, 2, 1, 1});
  const TestTensor low(ScalarType::Char, {1, 3});
  const TestTensor at(ScalarType::Long, {1, 3});
  CHECK(topk(x, 1, 0, false, low, at) == Error::Ok);
  CHECK(low.items<int8_t>() == std::vector<int8_t>{3, -2, 2});
  CHECK(at.items<int64_t>() == Ints{0, 1, 0});
  const auto scalar = TestTensor::of<float>({}, {7});
  const TestTensor one(ScalarType::Float, {});
  const TestTensor zero(ScalarType::Long, {});
  CHECK(sort(scalar, -1, false, one, zero) == Error::Ok);
  CHECK(zero.items<int64_t>() == Ints{0});
  CHECK(topk(x, 0, 1, true, {ScalarType::Char, {2, 0}},
             {ScalarType::Long, {2, 0}}) == Error::Ok);
}

TEST_CASE("sort and topk refuse what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const TestTensor values(ScalarType::Float, {2, 3});
  const TestTensor indices(ScalarType::Long, {2, 3});
  CHECK(sort(x, 2, false, values, indices) == Error::InvalidArgument);
  CHECK(sort(x, 1, false, {ScalarType::Int, {2, 3}}, indices) ==
        Error::InvalidArgument);
  CHECK(sort(x, 1, false, values, {ScalarType::Int, {2, 3}}) ==
        Error::InvalidArgument);
  CHECK(sort(x, 1, false, values, {ScalarType::Long, {3, 2}}) ==
        Error::InvalidArgument);
  for (const int64_t k : {-1, 2, 4}) {
    CHECK(topk(x, k, 1, false, values, indices) == Error::InvalidArgument);
  }
  CHECK(topk(x, (1LL << 32) + 3, 1, false, values, indices) ==
        Error::InvalidArgument);
  CHECK(topk({ScalarType::Bool, {2, 3}}, 3, 1, false,
             {ScalarType::Bool, {2, 3}}, indices) == Error::DtypeNotSelected);
  CHECK(values.items<uint8_t>()[0] == TestTensor::kPattern);
}

TEST_CASE("median is the lower of two, NaN if there is one") {
  const auto x = TestTensor::of<float>(
      {3, 4}, {4, 1, 3, 2, -1, -0.0F, 0, 9, 1, kNan, 0, kNan});
  const TestTensor values(ScalarType::Float, {3});
  const TestTensor indices(ScalarType::Long, {3});
  CHECK(median(x, 1, values, indices) == Error::Ok);
  CHECK(values.items<float>()[0] == 2);
  CHECK(values.items<float>()[1] == 0);
  CHECK(std::isnan(values.items<float>()[2]));
  CHECK(indices.items<int64_t>() == Ints{3, 1, 1});
  CHECK(median({ScalarType::Float, {3, 0}}, 1, values, indices) ==
        Error::InvalidArgument);
  CHECK(median(x, 2, values, indices) == Error::InvalidArgument);
}

template <typename T>
void check_medians(T low, T high) {
  std::mt19937_64 random(2);  // NOLINT: the same numbers every time
  for (int32_t size = 1; size < 40; ++size) {
    std::vector<T> items;
    for (int32_t i = 0; i < size; ++i)
      items.push_back(static_cast<T>(random()));
    items[0] = low;
    items[static_cast<size_t>(size) / 2] = high;
    const auto x = TestTensor::of<T>({size}, items);
    const TestTensor value(DtypeOf<T>::value, {});
    const TestTensor index(ScalarType::Long, {});
    CHECK(median(x, 0, value, index) == Error::Ok);
    const auto at = static_cast<size_t>(index.items<int64_t>()[0]);
    CHECK(items[at] == value.items<T>()[0]);
    std::sort(items.begin(), items.end());
    CHECK(items[(items.size() - 1) / 2] == value.items<T>()[0]);
  }
}

TEST_CASE("median of all bits") {
  check_medians<uint8_t>(0, 255);
  check_medians<int8_t>(-128, 127);
  check_medians<int32_t>(INT32_MIN, INT32_MAX);
  check_medians<int64_t>(INT64_MIN, INT64_MAX);
  check_medians<float>(-INFINITY, INFINITY);
  check_medians<double>(-INFINITY, 5e-324);
}

}  // namespace
}  // namespace orch::test
