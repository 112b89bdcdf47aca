// Places among boundaries: what is refused, and memory that overlaps. Medians
// of nothing.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Longs = std::vector<int64_t>;

TestTensor longs(Sizes sizes, const Longs& items) {
  return TestTensor::of<int64_t>(std::move(sizes), items);
}

TestTensor floats(Sizes sizes, const std::vector<float>& items) {
  return TestTensor::of<float>(std::move(sizes), items);
}

Call search(const TestTensor& boundaries, const TestTensor& items, bool right,
            const std::string& side) {
  Call call;
  call.add(boundaries).add(items).boolean(false).boolean(right);
  return std::move(side.empty() ? call.none() : call.text(side));
}

TEST_CASE("indices of a sorter are checked before anything is written") {
  const TestTensor x = floats({3}, {3, 1, 2});
  const TestTensor items = floats({2}, {1.5F, 9});
  const TestTensor out(ScalarType::Long, {2});
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    CHECK(search(x, items, false, "")
              .add(longs({3}, {1, 2, bad}))
              .add(out)
              .run(searchsorted_Tensor_out) == Error::InvalidArgument);
  }
  CHECK(search(x, items, false, "")
            .add(longs({2}, {1, 2}))
            .add(out)
            .run(searchsorted_Tensor_out) == Error::InvalidArgument);
  for (size_t i = 0; i < out.bytes(); ++i) {
    CHECK(out.data()[i] == TestTensor::kPattern);
  }
  CHECK(search(x, items, false, "")
            .add(longs({3}, {1, 2, 0}))
            .add(out)
            .run(searchsorted_Tensor_out) == Error::Ok);
  CHECK(out.items<int64_t>() == Longs{1, 3});
}

TEST_CASE("a sorter that is written over is checked again") {
  const TestTensor sorter = longs({2}, {0, 1});
  CHECK(search(floats({2}, {1, 2}), floats({2}, {5, 0}), false, "")
            .add(sorter)
            .add(sorter)
            .run(searchsorted_Tensor_out) == Error::InvalidArgument);
}

TEST_CASE("a side is left or right, and does not contradict `right`") {
  const TestTensor x = floats({3}, {1, 2, 2});
  const TestTensor items = floats({1}, {2});
  const TestTensor out(ScalarType::Long, {1});
  const auto run = [&](bool right, const std::string& side) {
    return search(x, items, right, side)
        .none()
        .add(out)
        .run(searchsorted_Tensor_out);
  };
  CHECK(run(true, "left") == Error::InvalidArgument);
  CHECK(run(false, "middle") == Error::InvalidArgument);
  CHECK(run(false, "left") == Error::Ok);
  CHECK(out.items<int64_t>() == Longs{1});
  CHECK(run(false, "right") == Error::Ok);
  CHECK(out.items<int64_t>() == Longs{3});
}

TEST_CASE("places are Int or Long, as asked") {
  const TestTensor x = floats({2}, {1, 2});
  const TestTensor out(ScalarType::Int, {2});
  for (const bool narrow : {false, true}) {
    CHECK(Call().add(x).add(x).boolean(narrow).boolean(true).add(out).run(
              bucketize_Tensor_out) ==
          (narrow ? Error::Ok : Error::InvalidArgument));
  }
  CHECK(out.items<int32_t>() == std::vector<int32_t>{1, 2});
  const TestTensor rows = floats({1, 2}, {1, 2});
  CHECK(Call().add(x).add(rows).boolean(true).boolean(true).add(out).run(
            bucketize_Tensor_out) == Error::InvalidArgument);
}

TEST_CASE("nothing has no median") {
  const TestTensor none(ScalarType::Float, {0, 2});
  const TestTensor out(ScalarType::Float, {});
  for (const auto kernel : {median_out, nanmedian_out}) {
    CHECK(Call().add(none).add(out).run(kernel) == Error::InvalidArgument);
  }
}

}  // namespace
}  // namespace orch::test
