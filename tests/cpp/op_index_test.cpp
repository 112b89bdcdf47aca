// Operators that take indices from tensors: index, index_put, embedding.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using List = std::vector<const TestTensor*>;
using Bytes = std::vector<uint8_t>;
using Longs = std::vector<int64_t>;

TestTensor longs(const Longs& items) {
  return TestTensor::of<int64_t>({static_cast<int32_t>(items.size())}, items);
}

TestTensor bytes(Sizes sizes) {
  TestTensor made(ScalarType::Byte, std::move(sizes));
  for (size_t i = 0; i < made.bytes(); ++i) {
    made.data()[i] = static_cast<uint8_t>(i);
  }
  return made;
}

bool unwritten(const TestTensor& tensor) {
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    if (tensor.data()[i] != TestTensor::kPattern) return false;
  }
  return true;
}

Error index(const TestTensor& self, const List& indices,
            const TestTensor& out) {
  return Call().add(self).tensors(indices).add(out).run(index_Tensor_out);
}

Error put(const TestTensor& self, const List& indices, const TestTensor& values,
          bool accumulate, const TestTensor& out) {
  return Call()
      .add(self)
      .tensors(indices)
      .add(values)
      .boolean(accumulate)
      .add(out)
      .run(index_put_out);
}

Error embed(const TestTensor& weight, const TestTensor& indices,
            const TestTensor& out) {
  return Call()
      .add(weight)
      .add(indices)
      .integer(-1)
      .boolean(false)
      .boolean(false)
      .add(out)
      .run(embedding_out);
}

TEST_CASE("index puts the common dimensions where they belong") {
  const TestTensor x = bytes({2, 3, 2});
  const TestTensor two = longs({2, 0});
  const TestTensor one = longs({-1});
  const TestTensor out(ScalarType::Byte, {2, 2, 2});
  CHECK(index(x, {nullptr, &two}, out) == Error::Ok);
  CHECK(out.items<uint8_t>() == Bytes{4, 5, 0, 1, 10, 11, 6, 7});
  // Neighbours stay in place, others go to the front.
  const TestTensor inner(ScalarType::Byte, {2, 2});
  CHECK(index(x, {nullptr, &two, &one}, inner) == Error::Ok);
  CHECK(inner.items<uint8_t>() == Bytes{5, 1, 11, 7});
  const auto front = TestTensor(ScalarType::Byte, {2, 3}).dynamic();
  CHECK(index(x, {&one, nullptr, &one}, front) == Error::Ok);
  CHECK(front.sizes() == Sizes{1, 3});
  CHECK(front.items<uint8_t>()[2] == 11);
  const TestTensor copy(ScalarType::Byte, {2, 3, 2});
  CHECK(index(x, {nullptr}, copy) == Error::Ok);
  CHECK(copy.items<uint8_t>() == x.items<uint8_t>());
}

TEST_CASE("index without positions, without items") {
  const TestTensor none = longs({});
  CHECK(index({ScalarType::Byte, {0, 2}}, {&none},
              {ScalarType::Byte, {0, 2}}) == Error::Ok);
  const TestTensor zero = longs({0});
  CHECK(index({ScalarType::Byte, {2, 0}}, {&zero},
              {ScalarType::Byte, {1, 0}}) == Error::Ok);
  CHECK(index({ScalarType::Byte, {0, 2}}, {&zero},
              {ScalarType::Byte, {1, 2}}) == Error::InvalidArgument);
}

TEST_CASE("index checks every index before it writes") {
  const TestTensor x = bytes({3, 2});
  const TestTensor out(ScalarType::Byte, {2, 2});
  for (const int64_t bad : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN,
                            int64_t{1} << 32, (int64_t{1} << 32) + 1}) {
    const TestTensor indices = longs({0, bad});
    CHECK(index(x, {&indices}, out) == Error::InvalidArgument);
    CHECK(put(x, {&indices}, bytes({2}), false, {ScalarType::Byte, {3, 2}}) ==
          Error::InvalidArgument);
    CHECK(embed(x, indices, out) == Error::InvalidArgument);
  }
  const TestTensor last = longs({0, -1});
  CHECK(embed(x, last, out) == Error::InvalidArgument);
  CHECK(unwritten(out));
  CHECK(index(x, {&last}, out) == Error::Ok);
}

TEST_CASE("indices that are written over are checked again") {
  // Here the indices are the output; a hostile program may lay any over any.
  const auto values = TestTensor::of<int64_t>({2}, {1 << 30, 1 << 30});
  const auto target = TestTensor::of<int64_t>({2}, {1, 0});
  CHECK(put(target, {&target}, values, false, target) ==
        Error::InvalidArgument);
}

TEST_CASE("index refuses what does not fit") {
  const TestTensor x = bytes({3, 2});
  const TestTensor out(ScalarType::Byte, {2, 2});
  const TestTensor two = longs({0, 1});
  const TestTensor three = longs({0, 1, 2});
  CHECK(index(x, {&two, &three}, out) == Error::InvalidArgument);
  CHECK(index(x, {&two, &two, &two}, out) == Error::InvalidArgument);
  CHECK(index(x, {&two}, {ScalarType::Byte, {3, 2}}) == Error::InvalidArgument);
  CHECK(index(x, {&two}, {ScalarType::Char, {2, 2}}) == Error::InvalidArgument);
  const TestTensor floats(ScalarType::Float, {2});
  CHECK(index(x, {&floats}, out) == Error::InvalidArgument);
  const TestTensor many(ScalarType::Long, {1, 1, 1, 1, 1, 1, 1, 1});
  std::memset(many.data(), 0, many.bytes());
  CHECK(index(x, {&many}, out) == Error::InvalidArgument);
  CHECK(unwritten(out));
  // The output is an index tensor, whose sizes would change.
  const auto grows = TestTensor(ScalarType::Long, {1, 1}).dynamic();
  std::memset(grows.data(), 0, grows.bytes());
  CHECK(index({ScalarType::Long, {1}}, {&grows}, grows) == Error::Ok);
  CHECK(index({ScalarType::Long, {1, 0}}, {&grows}, grows) ==
        Error::InvalidArgument);
  CHECK(grows.sizes() == Sizes{1, 1});
}

TEST_CASE("index has no more positions than it can count") {
  // Together 2^32 positions: as if they were none.
  const TestTensor rows(ScalarType::Int, {1 << 16, 1});
  const TestTensor columns(ScalarType::Int, {1, 1 << 16});
  std::memset(rows.data(), 0, rows.bytes());
  std::memset(columns.data(), 0, columns.bytes());
  CHECK(index(bytes({1, 1}), {&rows, &columns},
              TestTensor(ScalarType::Byte, {1, 1}).dynamic()) ==
        Error::ShapeTooLarge);
}

TEST_CASE("index_put writes values in their order, or adds them") {
  const auto x = TestTensor::of<int32_t>({4}, {1, 2, 3, 4});
  const TestTensor twice = longs({3, 3, 0});
  const auto values = TestTensor::of<int32_t>({3}, {10, 20, 30});
  const TestTensor out(ScalarType::Int, {4});
  CHECK(put(x, {&twice}, values, false, out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{30, 2, 3, 20});
  CHECK(put(x, {&twice}, values, true, out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{31, 2, 3, 34});
  const auto one = TestTensor::of<int32_t>({1}, {INT32_MAX});
  CHECK(put(x, {&twice}, one, true, out) == Error::Ok);
  CHECK(out.items<int32_t>()[0] == INT32_MIN);
  // In place: the output is the input.
  CHECK(put(x, {&twice}, values, false, x) == Error::Ok);
  CHECK(x.items<int32_t>() == std::vector<int32_t>{30, 2, 3, 20});
}

TEST_CASE("index_put refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {3, 2});
  const TestTensor two = longs({0, 1});
  const TestTensor value(ScalarType::Float, {2, 2});
  const TestTensor out(ScalarType::Float, {3, 2});
  CHECK(put(x, {&two}, {ScalarType::Float, {3, 2}}, false, out) ==
        Error::InvalidArgument);
  CHECK(put(x, {&two}, {ScalarType::Float, {1, 2, 2}}, false, out) ==
        Error::InvalidArgument);
  CHECK(put(x, {&two}, {ScalarType::Int, {2, 2}}, false, out) ==
        Error::InvalidArgument);
  CHECK(put(x, {&two}, value, false, {ScalarType::Float, {2, 2}}) ==
        Error::InvalidArgument);
  CHECK(put(x, {&two}, value, false, {ScalarType::Int, {3, 2}}) ==
        Error::InvalidArgument);
  CHECK(unwritten(out));
  const auto shared = TestTensor(ScalarType::Float, {2, 2}).dynamic();
  CHECK(put(x, {&two}, shared, false, shared) == Error::InvalidArgument);
  CHECK(shared.sizes() == Sizes{2, 2});
}

TEST_CASE("embedding looks rows up") {
  const TestTensor weight = bytes({3, 2});
  const auto indices = TestTensor::of<int32_t>({1, 2}, {2, 0});
  const auto out = TestTensor(ScalarType::Byte, {2, 2, 2}).dynamic();
  CHECK(embed(weight, indices, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{1, 2, 2});
  const Bytes items = out.items<uint8_t>();
  CHECK(Bytes(items.begin(), items.begin() + 4) == Bytes{4, 5, 0, 1});
  CHECK(embed(weight, longs({}), {ScalarType::Byte, {0, 2}}) == Error::Ok);
  CHECK(embed({ScalarType::Byte, {3, 0}}, longs({1}),
              {ScalarType::Byte, {1, 0}}) == Error::Ok);
}

TEST_CASE("embedding refuses what does not fit") {
  const TestTensor weight = bytes({3, 2});
  const TestTensor one = longs({1});
  const TestTensor out(ScalarType::Byte, {1, 2});
  CHECK(embed(weight, one, {ScalarType::Byte, {2}}) == Error::InvalidArgument);
  CHECK(embed(weight, one, {ScalarType::Char, {1, 2}}) ==
        Error::InvalidArgument);
  CHECK(embed(bytes({6}), one, out) == Error::InvalidArgument);
  CHECK(embed(weight, {ScalarType::Short, {1}}, out) == Error::InvalidArgument);
  const TestTensor many(ScalarType::Long, {1, 1, 1, 1, 1, 1, 1, 1});
  std::memset(many.data(), 0, many.bytes());
  CHECK(embed(weight, many, out) == Error::InvalidArgument);
  CHECK(unwritten(out));
}

}  // namespace
}  // namespace orch::test
