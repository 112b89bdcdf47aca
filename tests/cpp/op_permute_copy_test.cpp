#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::permute_copy_out;

Error permute(const TestTensor& self, const std::vector<int64_t>& dims,
              const TestTensor& out) {
  return Call().add(self).ints(dims).add(out).run(permute_copy_out);
}

TEST_CASE("permute_copy moves dimensions") {
  const auto x = TestTensor::of<int16_t>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor out(ScalarType::Short, {3, 1, 2});
  CHECK(permute(x, {2, 0, 1}, out) == Error::Ok);
  CHECK(out.items<int16_t>() == std::vector<int16_t>{1, 4, 2, 5, 3, 6});
  CHECK(permute(x, {-1, -3, -2}, out) == Error::Ok);
  CHECK(out.items<int16_t>() == std::vector<int16_t>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("permute_copy keeps every bit") {
  const auto x = TestTensor::of<uint32_t>({2}, {0x7F800001U, 0xFFFFFFFFU});
  const TestTensor out(ScalarType::UInt32, {2});
  CHECK(permute(x, {0}, out) == Error::Ok);
  CHECK(out.items<uint32_t>() == x.items<uint32_t>());
}

TEST_CASE("permute_copy without dimensions, without items, of eight") {
  const auto x = TestTensor::of<bool>({}, {true});
  const TestTensor out(ScalarType::Bool, {});
  CHECK(permute(x, {}, out) == Error::Ok);
  CHECK(out.items<uint8_t>()[0] == 1);
  CHECK(permute({ScalarType::Long, {0, 70000, 2}}, {1, 2, 0},
                {ScalarType::Long, {70000, 2, 0}}) == Error::Ok);
  const TestTensor eight(ScalarType::Byte, {2, 1, 2, 1, 2, 1, 2, 3});
  CHECK(permute(eight, {7, 6, 5, 4, 3, 2, 1, 0},
                {ScalarType::Byte, {3, 2, 1, 2, 1, 2, 1, 2}}) == Error::Ok);
}

TEST_CASE("permute_copy refuses what is no permutation") {
  const TestTensor x(ScalarType::Float, {2, 2});
  const TestTensor out(ScalarType::Float, {2, 2});
  CHECK(permute(x, {0, 0}, out) == Error::InvalidArgument);
  CHECK(permute(x, {1, -1}, out) == Error::InvalidArgument);
  CHECK(permute(x, {0, 2}, out) == Error::InvalidArgument);
  CHECK(permute(x, {0, -3}, out) == Error::InvalidArgument);
  CHECK(permute(x, {0, 1LL << 32}, out) == Error::InvalidArgument);
  CHECK(permute(x, {0}, out) == Error::InvalidArgument);
  CHECK(permute(x, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, out) ==
        Error::InvalidArgument);
  CHECK(permute(x, {1, 0}, {ScalarType::Float, {4, 1}}) ==
        Error::InvalidArgument);
  CHECK(permute(x, {1, 0}, {ScalarType::Int, {2, 2}}) ==
        Error::InvalidArgument);
  const auto wide = TestTensor(ScalarType::Float, {2, 3}).dynamic();
  CHECK(permute(wide, {1, 0}, wide) == Error::InvalidArgument);
  CHECK(wide.sizes() == Sizes{2, 3});
}

}  // namespace
}  // namespace orch::test
