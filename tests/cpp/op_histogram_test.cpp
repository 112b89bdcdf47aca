// Histograms: what is refused, ranges without width, and memory that overlaps.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Floats = std::vector<float>;

TestTensor floats(Sizes sizes, const Floats& items) {
  return TestTensor::of<float>(std::move(sizes), items);
}

/// A call with a number of bins; without a range if `range` is empty.
Error count(const TestTensor& self, int64_t bins,
            const std::vector<double>& range, const TestTensor& hist,
            const TestTensor& edges, const TestTensor* weight = nullptr) {
  Call call;
  call.add(self).integer(bins);
  range.empty() ? call.none() : call.doubles(range);
  weight == nullptr ? call.none() : call.add(*weight);
  return call.boolean(false).add(hist).add(edges).run(histogram_bin_ct_out);
}

TEST_CASE("a range is two finite numbers in order, or that of finite items") {
  constexpr double kInfinity = __builtin_inf();
  const TestTensor x = floats({3}, {1, 2, 4});
  const TestTensor hist(ScalarType::Float, {2});
  const TestTensor edges(ScalarType::Float, {3});
  using Range = std::vector<double>;
  for (const Range& range : {Range{2, 1}, Range{0, kInfinity}, Range{1},
                             Range{__builtin_nan(""), 1}, Range{0, 1, 2}}) {
    CHECK(count(x, 2, range, hist, edges) == Error::InvalidArgument);
  }
  for (const double bad : {kInfinity, -kInfinity, __builtin_nan("")}) {
    const TestTensor odd = floats({2}, {1, static_cast<float>(bad)});
    CHECK(count(odd, 2, {}, hist, edges) == Error::InvalidArgument);
  }
  CHECK(count(x, 0, {}, hist, edges) == Error::InvalidArgument);
  CHECK(count(x, INT64_MAX, {}, hist, edges) == Error::InvalidArgument);
  for (size_t i = 0; i < hist.bytes(); ++i) {
    CHECK(hist.data()[i] == TestTensor::kPattern);
  }
  CHECK(count(x, 2, {}, hist, edges) == Error::Ok);
  CHECK(hist.items<float>() == Floats{2, 1});
  CHECK(edges.items<float>() == Floats{1, 2.5F, 4});
}

TEST_CASE("a range that the dtype cannot make wider is one place") {
  const TestTensor x = floats({2}, {1e10F, 1e10F});
  const TestTensor hist(ScalarType::Float, {4});
  const TestTensor edges(ScalarType::Float, {5});
  CHECK(count(x, 4, {}, hist, edges) == Error::Ok);
  CHECK(hist.items<float>() == Floats{0, 2, 0, 0});
}

TEST_CASE("edges are rounded once") {
  const auto run = [](const TestTensor& x, const TestTensor& edges) {
    const TestTensor hist(x.dtype(), {7});
    CHECK(count(x, 7, {-1.1, 2.3}, hist, edges) == Error::Ok);
  };
  const TestTensor single(ScalarType::Float, {8});
  run(floats({0}, {}), single);
  CHECK(single.items<float>()[3] == 0x1.6db6dap-2F);
  const TestTensor wide(ScalarType::Double, {8});
  run(TestTensor::of<double>({0}, {}), wide);
  CHECK(wide.items<double>()[3] == 0x1.6db6db6db6db5p-2);
}

TEST_CASE("weights have the sizes of the items, in any dim order") {
  const TestTensor x = floats({2, 2}, {0, 1, 1, 0});
  const TestTensor hist(ScalarType::Float, {1});
  const TestTensor edges(ScalarType::Float, {2});
  const TestTensor flat = floats({4}, {1, 1, 1, 1});
  CHECK(count(x, 1, {}, hist, edges, &flat) == Error::InvalidArgument);
  // Added by index: in another order 1 would be lost.
  const TestTensor weight =
      TestTensor::of<float>({2, 2}, {0x1p24F, 1, -0x1p24F, 0}, {1, 0});
  CHECK(count(x, 1, {}, hist, edges, &weight) == Error::Ok);
  CHECK(hist.items<float>() == Floats{1});
}

TEST_CASE("edges are a line of two or more") {
  const TestTensor x = floats({2}, {0, 1});
  const TestTensor hist(ScalarType::Float, {1});
  const TestTensor edges(ScalarType::Float, {2});
  const auto run = [&](const TestTensor& bins, const TestTensor& counts) {
    return Call()
        .add(x)
        .add(bins)
        .none()
        .boolean(false)
        .add(counts)
        .add(edges)
        .run(histogram_bins_tensor_out);
  };
  CHECK(run(floats({1}, {0}), hist) == Error::InvalidArgument);
  CHECK(run(floats({2, 1}, {0, 1}), hist) == Error::InvalidArgument);
  CHECK(run(TestTensor::of<double>({2}, {0, 1}), hist) ==
        Error::InvalidArgument);
  CHECK(run(floats({2}, {0, 1}), hist) == Error::Ok);
  CHECK(hist.items<float>() == Floats{2});
}

}  // namespace
}  // namespace orch::test
