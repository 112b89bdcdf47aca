#include <doctest/doctest.h>

#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::upsample_nearest2d_vec_out;
using Bytes = std::vector<uint8_t>;
using Ints = std::vector<int64_t>;
using Factors = std::vector<double>;

Error resized(const TestTensor& x, const Ints& size, const TestTensor& out) {
  return Call().add(x).ints(size).none().add(out).run(
      upsample_nearest2d_vec_out);
}

Error scaled(const TestTensor& x, const Factors& factors,
             const TestTensor& out) {
  return Call().add(x).none().doubles(factors).add(out).run(
      upsample_nearest2d_vec_out);
}

TEST_CASE("upsample_nearest2d repeats the nearest item") {
  const auto x = TestTensor::of<uint8_t>({1, 1, 2, 2}, {1, 2, 3, 4});
  const TestTensor out(ScalarType::Byte, {1, 1, 3, 4});
  CHECK(resized(x, {3, 4}, out) == Error::Ok);
  CHECK(out.items<uint8_t>() == Bytes{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4});
  const auto dynamic = TestTensor(ScalarType::Byte, {1, 1, 4, 4}).dynamic();
  CHECK(scaled(x, {0.5, 1.9}, dynamic) == Error::Ok);
  CHECK(dynamic.sizes() == Sizes{1, 1, 1, 3});
  CHECK(resized({ScalarType::Byte, {0, 1, 2, 2}}, {3, 4},
                {ScalarType::Byte, {0, 1, 3, 4}}) == Error::Ok);
}

TEST_CASE("upsample_nearest2d refuses what does not fit") {
  const TestTensor x(ScalarType::Byte, {1, 1, 2, 2});
  const TestTensor out(ScalarType::Byte, {1, 1, 4, 4});
  for (const Ints& size :
       {Ints{4}, Ints{4, 4, 4}, Ints{0, 4}, Ints{4, -4}, Ints{4, 3},
        Ints{4, (1LL << 32) + 4}, Ints{INT64_MAX, 4}, Ints{}}) {
    CHECK(resized(x, size, out) == Error::InvalidArgument);
  }
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double factor : {0.0, -2.0, 0.4, 1e-300, 1e300, inf, -inf, nan}) {
    CHECK(scaled(x, {2, factor}, out) == Error::InvalidArgument);
  }
  CHECK(scaled(x, {2}, out) == Error::InvalidArgument);
  CHECK(scaled(x, {2, 2, 2}, out) == Error::InvalidArgument);
  CHECK(scaled(x, {2, 5e8},
               TestTensor(ScalarType::Byte, {1, 1, 4, 4}).dynamic()) ==
        Error::ShapeTooLarge);
  CHECK(Call().add(x).none().none().add(out).run(upsample_nearest2d_vec_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).ints({4, 4}).doubles({2, 2}).add(out).run(
            upsample_nearest2d_vec_out) == Error::InvalidArgument);
  CHECK(resized({ScalarType::Byte, {1, 2, 2}}, {4, 4}, out) ==
        Error::InvalidArgument);
  CHECK(resized({ScalarType::Byte, {1, 1, 0, 2}}, {4, 4}, out) ==
        Error::InvalidArgument);
  CHECK(resized(x, {4, 4}, {ScalarType::Char, {1, 1, 4, 4}}) ==
        Error::InvalidArgument);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
}

}  // namespace
}  // namespace orch::test
