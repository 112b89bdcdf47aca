#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::cat_out;
using List = std::vector<const TestTensor*>;

Error cat(const List& tensors, int64_t dim, const TestTensor& out) {
  return Call().tensors(tensors).integer(dim).add(out).run(cat_out);
}

TEST_CASE("cat puts tensors one after the other") {
  const auto a = TestTensor::of<int8_t>({2, 1}, {1, 2});
  const auto b = TestTensor::of<int8_t>({2, 2}, {3, 4, 5, 6});
  const TestTensor nothing(ScalarType::Char, {0});
  const auto out = TestTensor(ScalarType::Char, {2, 4}).dynamic();
  CHECK(cat({&a, &nothing, &b, &a}, -1, out) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, 3, 4, 1, 2, 5, 6, 2});
  CHECK(cat({&b, &b}, 0, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{4, 2});
  CHECK(cat({&nothing, &nothing}, 0, {ScalarType::Char, {0}}) == Error::Ok);
}

TEST_CASE("cat converts to the dtype of the output") {
  const auto a = TestTensor::of<int32_t>({2}, {-3, 70000});
  const auto b = TestTensor::of<float>({1}, {0.5F});
  const TestTensor out(ScalarType::Float, {3});
  CHECK(cat({&a, &b}, 0, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-3, 70000, 0.5F});
  CHECK(cat({&a, &b}, 0, {ScalarType::Int, {3}}) == Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {1});
  CHECK(cat({&a, &bools}, 0, {ScalarType::Bool, {3}}) ==
        Error::InvalidArgument);
  const TestTensor words(ScalarType::UInt16, {1});
  CHECK(cat({&words}, 0, {ScalarType::UInt16, {1}}) == Error::DtypeNotSelected);
}

TEST_CASE("cat refuses what does not fit, and writes nothing") {
  const TestTensor a(ScalarType::Float, {2, 2});
  const TestTensor b(ScalarType::Float, {3, 2});
  const TestTensor flat(ScalarType::Float, {4});
  const TestTensor scalar(ScalarType::Float, {});
  const TestTensor empty(ScalarType::Float, {0, 3});
  const TestTensor out(ScalarType::Float, {5, 2});
  CHECK(cat({}, 0, out) == Error::InvalidArgument);
  CHECK(cat({&a, nullptr}, 0, out) == Error::InvalidArgument);
  CHECK(cat({&a, &b}, 1, out) == Error::InvalidArgument);
  CHECK(cat({&a, &b}, 2, out) == Error::InvalidArgument);
  CHECK(cat({&a, &b}, -3, out) == Error::InvalidArgument);
  CHECK(cat({&a, &flat}, 0, out) == Error::InvalidArgument);
  CHECK(cat({&a, &scalar}, 0, out) == Error::InvalidArgument);
  CHECK(cat({&a, &b, &empty}, 0, out) == Error::InvalidArgument);
  CHECK(cat({&a, &a}, 0, out) == Error::InvalidArgument);
  for (size_t i = 0; i < out.bytes(); ++i) {
    REQUIRE(out.data()[i] == TestTensor::kPattern);
  }
  // An output that is an input would grow under it.
  const auto self = TestTensor(ScalarType::Float, {2, 2}).dynamic();
  CHECK(cat({&self, &self}, 0, self) == Error::InvalidArgument);
  CHECK(self.sizes() == Sizes{2, 2});
  CHECK(cat({&a, &b}, 0, TestTensor(ScalarType::Float, {4, 2}).dynamic()) ==
        Error::ShapeTooLarge);
}

}  // namespace
}  // namespace orch::test
