// Adaptive pooling: windows of all sizes.
#include <doctest/doctest.h>

#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Ints = std::vector<int64_t>;

Error average(const TestTensor& self, const Ints& sizes,
              const TestTensor& out) {
  return Call().add(self).ints(sizes).add(out).run(_adaptive_avg_pool2d_out);
}

TEST_CASE("adaptive windows begin at floor and end at ceil") {
  for (int32_t in = 1; in <= 12; ++in) {
    for (int32_t to = 1; to <= 14; ++to) {
      std::vector<float> items;
      for (int32_t i = 0; i < in; ++i) {
        items.push_back(static_cast<float>(1 << i));
      }
      const auto x = TestTensor::of<float>({1, 1, in}, items);
      const TestTensor values(ScalarType::Float, {1, 1, to});
      const TestTensor indices(ScalarType::Long, {1, 1, to});
      CHECK(average(x, {1, to}, values) == Error::Ok);
      const auto averages = values.items<float>();
      CHECK(Call().add(x).ints({1, to}).add(values).add(indices).run(
                adaptive_max_pool2d_out) == Error::Ok);
      const auto largest = indices.items<int64_t>();
      for (int32_t o = 0; o < to; ++o) {
        const int32_t first = o * in / to;
        const int32_t last = ((o + 1) * in + to - 1) / to;
        const auto sum = static_cast<float>((1 << last) - (1 << first));
        const auto at = static_cast<size_t>(o);
        CHECK(averages[at] == sum / static_cast<float>(last - first));
        CHECK(largest[at] == last - 1);
      }
    }
  }
}

TEST_CASE("adaptive pooling in any dim order, of integers, of nothing") {
  const auto x =
      TestTensor::of<int64_t>({1, 2, 1, 2}, {1, -1, 2, -4}, {0, 2, 3, 1});
  const TestTensor out(ScalarType::Long, {1, 2, 1, 1});
  CHECK(average(x, {1}, out) == Error::Ok);
  CHECK(out.items<int64_t>() == Ints{1, -2});
  CHECK(average({ScalarType::Float, {2, 3, 3}}, {0, 2},
                {ScalarType::Float, {2, 0, 2}}) == Error::Ok);
  CHECK(average({ScalarType::Float, {0, 2, 3, 3}}, {1, 1},
                {ScalarType::Float, {0, 2, 1, 1}}) == Error::Ok);
}

TEST_CASE("adaptive pooling refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3, 3});
  const TestTensor out(ScalarType::Float, {2, 1, 1});
  for (const Ints& sizes :
       {Ints{}, Ints{1, 1, 1}, Ints{-1, 1}, Ints{2, 1}, Ints{1LL << 32, 1}}) {
    CHECK(average(x, sizes, out) == Error::InvalidArgument);
  }
  CHECK(average({ScalarType::Float, {2, 0, 3}}, {1, 1}, out) ==
        Error::InvalidArgument);
  CHECK(average({ScalarType::Float, {3, 3}}, {1, 1}, out) ==
        Error::InvalidArgument);
  CHECK(average(x, {1, 1}, {ScalarType::Long, {2, 1, 1}}) ==
        Error::InvalidArgument);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
}

}  // namespace
}  // namespace orch::test
