#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::max_pool2d_with_indices_out;

using Ints = std::vector<int64_t>;

constexpr int64_t kOutOfRange[] = {-1,        INT32_MAX,       1LL << 30,
                                   1LL << 32, (1LL << 32) + 1, INT64_MAX};

struct MaxPool {
  Ints kernel = {2, 2};
  Ints stride = {};
  Ints padding = {0, 0};
  Ints dilation = {1, 1};
  bool ceil_mode = false;

  Error operator()(const TestTensor& self, const TestTensor& out,
                   const TestTensor& indices) const {
    return Call()
        .add(self)
        .ints(kernel)
        .ints(stride)
        .ints(padding)
        .ints(dilation)
        .boolean(ceil_mode)
        .add(out)
        .add(indices)
        .run(max_pool2d_with_indices_out);
  }
};

TestTensor floats(Sizes sizes) { return {ScalarType::Float, std::move(sizes)}; }
TestTensor longs(Sizes sizes) { return {ScalarType::Long, std::move(sizes)}; }

TEST_CASE("max pooling of the part of a window that is inside") {
  const auto x = TestTensor::of<float>({1, 3, 3}, {1, 2, 3,  //
                                                   6, 5, 4,  //
                                                   7, 9, 8});
  MaxPool pool;
  pool.ceil_mode = true;
  const TestTensor out = floats({1, 2, 2});
  const TestTensor indices = longs({1, 2, 2});
  CHECK(pool(x, out, indices) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{6, 4, 9, 8});
  CHECK(indices.items<int64_t>() == Ints{3, 5, 7, 8});
  pool.ceil_mode = false;
  CHECK(pool(x, floats({1, 1, 1}), longs({1, 1, 1})) == Error::Ok);
}

TEST_CASE("max pooling keeps the last NaN and finds minus infinity") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto x = TestTensor::of<float>({1, 2, 4}, {9, nan, -inf, -inf,  //
                                                   nan, 9, -inf, -inf});
  const TestTensor out = floats({1, 1, 2});
  const TestTensor indices = longs({1, 1, 2});
  CHECK(MaxPool()(x, out, indices) == Error::Ok);
  CHECK(std::isnan(out.items<float>()[0]));
  CHECK(out.items<float>()[1] == -inf);
  CHECK(indices.items<int64_t>() == Ints{4, 2});
}

TEST_CASE("a window with no position inside gives the lowest value") {
  MaxPool pool;
  pool.padding = {0, 2};
  pool.kernel = {1, 2};
  pool.stride = {1, 4};
  pool.dilation = {1, 4};
  const auto x = TestTensor::of<int16_t>({1, 1, 1}, {7});
  const TestTensor out(ScalarType::Short, {1, 1, 1});
  CHECK(pool(x, out, longs({1, 1, 1})) == Error::Ok);
  CHECK(out.items<int16_t>()[0] == INT16_MIN);
}

TEST_CASE("max pooling refuses parameters out of range") {
  const TestTensor x = floats({1, 4, 4});
  const TestTensor out = floats({1, 2, 2});
  const TestTensor indices = longs({1, 2, 2});
  const auto refused = [&](auto change) {
    MaxPool pool;
    change(pool);
    return pool(x, out, indices) == Error::InvalidArgument;
  };
  for (const int64_t value : kOutOfRange) {
    CAPTURE(value);
    for (const bool ceil_mode : {false, true}) {
      CHECK(refused([&](MaxPool& p) {
        p.kernel = {value, 2};
        p.ceil_mode = ceil_mode;
      }));
      CHECK(refused([&](MaxPool& p) {
        p.stride = {2, value};
        p.ceil_mode = ceil_mode;
      }));
      CHECK(refused([&](MaxPool& p) {
        p.padding = {value};
        p.ceil_mode = ceil_mode;
      }));
      CHECK(refused([&](MaxPool& p) {
        p.dilation = {value};
        p.ceil_mode = ceil_mode;
      }));
      CHECK(refused([&](MaxPool& p) {
        p.kernel = p.stride = p.padding = p.dilation = {value};
        p.ceil_mode = ceil_mode;
      }));
    }
  }
  CHECK(refused([](MaxPool& p) { p.kernel = {0, 2}; }));
  CHECK(refused([](MaxPool& p) { p.stride = {0, 2}; }));
  CHECK(refused([](MaxPool& p) { p.dilation = {0}; }));
  CHECK(refused([](MaxPool& p) { p.padding = {2, 0}; }));
  CHECK(refused([](MaxPool& p) { p.kernel = {5, 5}; }));
  CHECK(refused([](MaxPool& p) { p.kernel = {}; }));
  CHECK(refused([](MaxPool& p) { p.kernel = {2, 2, 2}; }));
  CHECK(refused([](MaxPool& p) { p.padding = {}; }));
}

TEST_CASE("max pooling refuses padding of more than half a window") {
  MaxPool pool;
  pool.padding = {2, 0};
  CHECK(pool(floats({1, 4, 4}), floats({1, 4, 2}), longs({1, 4, 2})) ==
        Error::InvalidArgument);
  pool.dilation = {3, 1};  // windows of 4 rows
  CHECK(pool(floats({1, 4, 4}), floats({1, 3, 2}), longs({1, 3, 2})) ==
        Error::Ok);
}

TEST_CASE("max pooling refuses tensors that do not fit") {
  const MaxPool pool;
  const TestTensor out = floats({1, 2, 2});
  const TestTensor indices = longs({1, 2, 2});
  CHECK(pool(floats({4, 4}), out, indices) == Error::InvalidArgument);
  CHECK(pool(floats({1, 1, 1, 4, 4}), out, indices) == Error::InvalidArgument);
  CHECK(pool(floats({0, 4, 4}), out, indices) == Error::InvalidArgument);
  CHECK(pool(floats({1, 0, 4}), out, indices) == Error::InvalidArgument);
  CHECK(pool(floats({1, 4, 5}), out, longs({1, 2, 3})) ==
        Error::InvalidArgument);
  CHECK(pool(floats({1, 4, 4}), floats({1, 2, 3}), indices) ==
        Error::InvalidArgument);
  CHECK(pool(floats({1, 4, 4}), out, {ScalarType::Int, {1, 2, 2}}) ==
        Error::InvalidArgument);
  CHECK(pool(floats({1, 4, 4}), {ScalarType::Half, {1, 2, 2}}, indices) ==
        Error::InvalidArgument);
  CHECK(pool({ScalarType::Bool, {1, 4, 4}}, {ScalarType::Bool, {1, 2, 2}},
             indices) == Error::DtypeNotSelected);
  const auto batches = floats({0, 2, 4, 4});
  CHECK(pool(batches, floats({0, 2, 2, 2}), longs({0, 2, 2, 2})) == Error::Ok);
}

}  // namespace
}  // namespace orch::test
