#include "orch/tensor.h"

#include <doctest/doctest.h>

#include <limits>

#include "orch/value.h"
#include "support/call.h"

namespace orch::test {
namespace {

std::vector<int32_t> strides_of(const TestTensor& tensor) {
  const Strides strides(tensor.tensor());
  return {strides.at, strides.at + tensor.sizes().size()};
}

Error resize_to(const TestTensor& tensor, const Sizes& sizes) {
  Tensor t = tensor.tensor();
  return resize(t, {sizes.data(), sizes.size()});
}

TEST_CASE("strides follow the dim order") {
  CHECK(strides_of({ScalarType::Float, {2, 3, 4}}) == Sizes{12, 4, 1});
  CHECK(strides_of({ScalarType::Float, {2, 3, 4, 5}, {0, 2, 3, 1}}) ==
        Sizes{60, 1, 15, 3});
  CHECK(strides_of({ScalarType::Float, {2, 3}, {1, 0}}) == Sizes{1, 2});
  CHECK(strides_of({ScalarType::Float, {}}) == Sizes{});
  CHECK(strides_of({ScalarType::Float, {2, 0, 4}}) == Sizes{0, 4, 1});
}

TEST_CASE("same_sizes and same_layout") {
  const TestTensor a(ScalarType::Float, {2, 3, 4});
  const TestTensor b(ScalarType::Int, {2, 3, 4}, {0, 2, 1});
  const TestTensor c(ScalarType::Float, {2, 3, 5});
  const TestTensor d(ScalarType::Float, {2, 3});
  const TestTensor e(ScalarType::Float, {1, 1, 1}, {0, 2, 1});
  CHECK(same_sizes(a.tensor(), b.tensor()));
  CHECK_FALSE(same_sizes(a.tensor(), c.tensor()));
  CHECK_FALSE(same_sizes(a.tensor(), d.tensor()));
  CHECK_FALSE(same_layout(a.tensor(), b.tensor()));
  CHECK(same_layout(a.tensor(), c.tensor()));
  CHECK_FALSE(same_layout(a.tensor(), d.tensor()));
  CHECK(same_layout(b.tensor(), e.tensor()));
}

TEST_CASE("a static tensor keeps its sizes") {
  const TestTensor tensor(ScalarType::Float, {2, 3});
  CHECK(resize_to(tensor, {2, 3}) == Error::Ok);
  CHECK(resize_to(tensor, {3, 2}) == Error::InvalidArgument);
  CHECK(resize_to(tensor, {1, 3}) == Error::InvalidArgument);
  CHECK(resize_to(tensor, {2}) == Error::InvalidArgument);
  CHECK(resize_to(tensor, {2, 3, 1}) == Error::InvalidArgument);
  CHECK(tensor.sizes() == Sizes{2, 3});
  CHECK(resize_to({ScalarType::Float, {}}, {}) == Error::Ok);
}

TEST_CASE("a dynamic tensor grows up to its capacity") {
  const TestTensor tensor = TestTensor(ScalarType::Short, {4, 6}).dynamic();
  CHECK(resize_to(tensor, {2, 12}) == Error::Ok);
  CHECK(tensor.sizes() == Sizes{2, 12});
  CHECK(resize_to(tensor, {0, 1000}) == Error::Ok);
  CHECK(resize_to(tensor, {1, 1}) == Error::Ok);
  CHECK(resize_to(tensor, {24, 1}) == Error::Ok);
  CHECK(resize_to(tensor, {5, 5}) == Error::ShapeTooLarge);
  CHECK(resize_to(tensor, {24}) == Error::InvalidArgument);
  CHECK(resize_to(tensor, {-1, 6}) == Error::InvalidArgument);
  CHECK(resize_to(tensor, {-1, -1}) == Error::InvalidArgument);
  // Products that wrap around to something small.
  CHECK(resize_to(tensor, {65536, 65536}) == Error::ShapeTooLarge);
  CHECK(resize_to(tensor, {1 << 30, 4}) == Error::ShapeTooLarge);
  CHECK(resize_to(tensor, {0, INT32_MAX}) == Error::ShapeTooLarge);
  CHECK(tensor.sizes() == Sizes{24, 1});
}

TEST_CASE("a dynamic tensor without items") {
  const TestTensor tensor = TestTensor(ScalarType::Long, {0, 6}).dynamic();
  CHECK(resize_to(tensor, {0, 7}) == Error::Ok);
  CHECK(resize_to(tensor, {1, 1}) == Error::ShapeTooLarge);
}

Scalar scalar_of(double number) {
  Value value;
  value.set_double(number);
  return value.scalar();
}

TEST_CASE("scalars as integers: truncated, saturated, NaN is 0") {
  Value value;
  value.set_int(std::numeric_limits<int64_t>::min());
  CHECK(value.scalar().to_int() == std::numeric_limits<int64_t>::min());
  value.set_bool(true);
  CHECK(value.scalar().to_int() == 1);
  CHECK(scalar_of(2.9).to_int() == 2);
  CHECK(scalar_of(-2.9).to_int() == -2);
  CHECK(scalar_of(1e300).to_int() == std::numeric_limits<int64_t>::max());
  CHECK(scalar_of(0x1p63).to_int() == std::numeric_limits<int64_t>::max());
  CHECK(scalar_of(-0x1p63).to_int() == std::numeric_limits<int64_t>::min());
  CHECK(scalar_of(-1e300).to_int() == std::numeric_limits<int64_t>::min());
  CHECK(scalar_of(std::numeric_limits<double>::quiet_NaN()).to_int() == 0);
}

}  // namespace
}  // namespace orch::test
