#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::avg_pool2d_out;

using Ints = std::vector<int64_t>;

constexpr int64_t kOutOfRange[] = {-1,        INT32_MAX,       1LL << 30,
                                   1LL << 32, (1LL << 32) + 1, INT64_MAX};

struct AvgPool {
  Ints kernel = {2, 2};
  Ints stride = {};
  Ints padding = {0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  int64_t divisor = 0;  // 0: none
  bool zero_divisor = false;

  Error operator()(const TestTensor& self, const TestTensor& out) const {
    Call call;
    call.add(self)
        .ints(kernel)
        .ints(stride)
        .ints(padding)
        .boolean(ceil_mode)
        .boolean(count_include_pad);
    divisor == 0 && !zero_divisor ? call.none() : call.integer(divisor);
    return call.add(out).run(avg_pool2d_out);
  }
};

TestTensor floats(Sizes sizes) { return {ScalarType::Float, std::move(sizes)}; }

TEST_CASE("average pooling divides by what the options say") {
  const auto x = TestTensor::of<float>({1, 2, 2}, {1, 2, 3, 4});
  const TestTensor out = floats({1, 2, 2});
  AvgPool pool;
  pool.stride = {2, 2};
  pool.padding = {1, 1};
  CHECK(pool(x, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0.25, 0.5, 0.75, 1});
  pool.count_include_pad = false;
  CHECK(pool(x, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{1, 2, 3, 4});
  pool.divisor = -2;
  CHECK(pool(x, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-0.5, -1, -1.5, -2});
}

TEST_CASE("average pooling with ceil mode ends at the padding") {
  const auto x = TestTensor::of<float>({1, 1, 4}, {1, 2, 3, 6});
  AvgPool pool;
  pool.kernel = {1, 3};
  pool.stride = {1, 2};
  pool.padding = {0, 1};
  pool.ceil_mode = true;
  const TestTensor out = floats({1, 1, 3});
  CHECK(pool(x, out) == Error::Ok);
  // The last window covers the last item and one item of padding.
  CHECK(out.items<float>() == std::vector<float>{1, 11.0F / 3, 3});
}

TEST_CASE("average pooling of Long truncates and wraps around") {
  const auto x = TestTensor::of<int64_t>({1, 1, 2}, {INT64_MIN, 0});
  const TestTensor out(ScalarType::Long, {1, 1, 1});
  AvgPool pool;
  pool.kernel = {1, 2};
  pool.divisor = -1;
  CHECK(pool(x, out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == INT64_MIN);
  pool.divisor = 0;
  CHECK(pool(TestTensor::of<int64_t>({1, 1, 2}, {-4, 1}), out) == Error::Ok);
  CHECK(out.items<int64_t>()[0] == -1);
}

TEST_CASE("average pooling refuses parameters out of range") {
  const TestTensor x = floats({1, 4, 4});
  const TestTensor out = floats({1, 2, 2});
  const auto refused = [&](auto change) {
    AvgPool pool;
    change(pool);
    return pool(x, out) == Error::InvalidArgument;
  };
  for (const int64_t value : kOutOfRange) {
    CAPTURE(value);
    for (const bool ceil_mode : {false, true}) {
      CHECK(refused([&](AvgPool& p) {
        p.kernel = {2, value};
        p.ceil_mode = ceil_mode;
      }));
      CHECK(refused([&](AvgPool& p) {
        p.stride = {value, 2};
        p.ceil_mode = ceil_mode;
      }));
      CHECK(refused([&](AvgPool& p) {
        p.kernel = p.stride = p.padding = {value};
        p.ceil_mode = ceil_mode;
      }));
    }
    CHECK(refused([&](AvgPool& p) { p.padding = {0, value}; }));
  }
  CHECK(refused([](AvgPool& p) { p.zero_divisor = true; }));
  CHECK(refused([](AvgPool& p) { p.kernel = {0, 2}; }));
  CHECK(refused([](AvgPool& p) { p.stride = {0}; }));
  CHECK(refused([](AvgPool& p) { p.kernel = {5, 1}; }));
  CHECK(refused([](AvgPool& p) { p.padding = {2, 1}; }));
}

TEST_CASE("average pooling refuses padding of more than half a window") {
  AvgPool pool;
  pool.padding = {2, 0};
  CHECK(pool(floats({1, 4, 4}), floats({1, 4, 2})) == Error::InvalidArgument);
}

TEST_CASE("average pooling refuses tensors that do not fit") {
  const AvgPool pool;
  CHECK(pool(floats({4, 4}), floats({2, 2})) == Error::InvalidArgument);
  CHECK(pool(floats({1, 4, 4}), floats({1, 2, 3})) == Error::InvalidArgument);
  CHECK(pool(floats({1, 4, 4}), {ScalarType::Double, {1, 2, 2}}) ==
        Error::InvalidArgument);
  CHECK(pool({ScalarType::Int, {1, 4, 4}}, {ScalarType::Int, {1, 2, 2}}) ==
        Error::DtypeNotSelected);
  const auto out = TestTensor(ScalarType::Float, {1, 3, 3}).dynamic();
  CHECK(pool(floats({1, 4, 4}), out) == Error::Ok);
  CHECK(out.sizes() == Sizes{1, 2, 2});
  const auto same = TestTensor(ScalarType::Float, {1, 4, 4}).dynamic();
  CHECK(pool(same, same) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
