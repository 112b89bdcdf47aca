#include <doctest/doctest.h>

#include <cmath>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::native_layer_norm_out;
using Ints = std::vector<int64_t>;

constexpr ScalarType kFloat = ScalarType::Float;

/// A call with what most of them have.
struct LayerNorm {
  Ints shape = {2};
  const TestTensor* weight = nullptr;
  const TestTensor* bias = nullptr;
  double eps = 0;

  Error operator()(const TestTensor& input, const TestTensor& out,
                   const TestTensor& mean, const TestTensor& rstd) const {
    Call call;
    call.add(input).ints(shape);
    for (const TestTensor* tensor : {weight, bias}) {
      tensor == nullptr ? call.none() : call.add(*tensor);
    }
    call.number(eps).add(out).add(mean).add(rstd);
    return call.run(native_layer_norm_out);
  }
};

TEST_CASE("layer norm gives groups mean 0 and variance 1") {
  const auto x = TestTensor::of<float>({2, 2}, {1, 3, -10, 10});
  const auto weight = TestTensor::of<float>({2}, {1, 2});
  const auto bias = TestTensor::of<float>({2}, {0.5F, -0.5F});
  const TestTensor out(kFloat, {2, 2});
  const TestTensor mean(kFloat, {2, 1});
  const TestTensor rstd(kFloat, {2, 1});
  CHECK(LayerNorm()(x, out, mean, rstd) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-1, 1, -1, 1});
  CHECK(mean.items<float>() == std::vector<float>{2, 0});
  CHECK(rstd.items<float>() == std::vector<float>{1, 0.1F});
  CHECK(LayerNorm{{2}, &weight, &bias, 0}(x, out, mean, rstd) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-0.5F, 1.5F, -0.5F, 1.5F});
  const TestTensor turned(kFloat, {2, 2}, {1, 0});
  CHECK(LayerNorm{{2}, &weight, &bias, 0}(x, turned, mean, rstd) == Error::Ok);
  CHECK(turned.items<float>() == std::vector<float>{-0.5F, -0.5F, 1.5F, 1.5F});
  // Every tensor has its own dim order.
  const auto weights = TestTensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto biases = TestTensor::of<float>({2, 2}, {0, 20, 10, 30}, {1, 0});
  const auto cube = TestTensor::of<float>({1, 2, 2}, {-1, 1, -1, 1});
  const TestTensor normal(kFloat, {1, 2, 2}, {2, 1, 0});
  const TestTensor zero(kFloat, {1, 1, 1});
  const TestTensor one(kFloat, {1, 1, 1}, {1, 0, 2});
  CHECK(LayerNorm{{2, 2}, &weights, &biases, 0}(cube, normal, zero, one) ==
        Error::Ok);
  CHECK(normal.items<float>() == std::vector<float>{-1, 17, 12, 34});
  // In place.
  CHECK(LayerNorm()(x, x, mean, rstd) == Error::Ok);
  CHECK(x.items<float>() == std::vector<float>{-1, 1, -1, 1});
}

TEST_CASE("layer norm of far away numbers keeps their differences") {
  const auto x = TestTensor::of<float>({1, 2}, {1e6F, 1e6F + 1});
  const TestTensor out(kFloat, {1, 2});
  const TestTensor mean(kFloat, {1, 1});
  const TestTensor rstd(kFloat, {1, 1});
  CHECK(LayerNorm()(x, out, mean, rstd) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{-1, 1});
}

TEST_CASE("layer norm without groups, of empty groups, of dynamic sizes") {
  const TestTensor none(kFloat, {0, 1});
  CHECK(LayerNorm()({kFloat, {0, 2}}, {kFloat, {0, 2}}, none, none) ==
        Error::Ok);
  const TestTensor mean(kFloat, {2, 1});
  const TestTensor rstd(kFloat, {2, 1});
  CHECK(LayerNorm{{0}}({kFloat, {2, 0}}, {kFloat, {2, 0}}, mean, rstd) ==
        Error::Ok);
  CHECK(mean.items<float>() == std::vector<float>{0, 0});
  CHECK(std::isnan(rstd.items<float>()[1]));
  const auto x = TestTensor::of<float>({1, 2}, {1, 3});
  const auto out = TestTensor(kFloat, {4, 2}).dynamic();
  const auto means = TestTensor(kFloat, {4, 1}).dynamic();
  const auto rstds = TestTensor(kFloat, {4, 1}).dynamic();
  CHECK(LayerNorm()(x, out, means, rstds) == Error::Ok);
  CHECK(out.sizes() == Sizes{1, 2});
  CHECK(rstds.sizes() == Sizes{1, 1});
}

TEST_CASE("layer norm refuses what does not fit") {
  const TestTensor x(kFloat, {3, 2});
  const TestTensor out(kFloat, {3, 2});
  const TestTensor mean(kFloat, {3, 1});
  const TestTensor rstd(kFloat, {3, 1});
  for (const Ints& shape : {Ints{}, Ints{3}, Ints{2, 3}, Ints{1, 3, 2},
                            Ints{-1}, Ints{2, 2}, Ints{(1LL << 32) + 2}}) {
    CHECK(LayerNorm{shape}(x, out, mean, rstd) == Error::InvalidArgument);
  }
  for (const TestTensor& wrong :
       {TestTensor(kFloat, {3}), TestTensor(kFloat, {1}),
        TestTensor(kFloat, {1, 2}), TestTensor(ScalarType::Half, {2})}) {
    CHECK(LayerNorm{{2}, &wrong}(x, out, mean, rstd) == Error::InvalidArgument);
    CHECK(LayerNorm{{2}, nullptr, &wrong}(x, out, mean, rstd) ==
          Error::InvalidArgument);
    CHECK(LayerNorm()(x, wrong, mean, rstd) == Error::InvalidArgument);
    CHECK(LayerNorm()(x, out, wrong, rstd) == Error::InvalidArgument);
    CHECK(LayerNorm()(x, out, mean, wrong) == Error::InvalidArgument);
  }
  const TestTensor ints(ScalarType::Int, {3, 2});
  const TestTensor int_mean(ScalarType::Int, {3, 1});
  CHECK(LayerNorm()(ints, ints, int_mean, int_mean) == Error::DtypeNotSelected);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
  CHECK(mean.items<uint8_t>()[0] == TestTensor::kPattern);
  // An output that is another output, or an input, keeps its sizes.
  const auto shared = TestTensor(kFloat, {3, 2}).dynamic();
  CHECK(LayerNorm()(x, shared, shared, rstd) == Error::InvalidArgument);
  CHECK(LayerNorm()(shared, out, mean, shared) == Error::InvalidArgument);
  CHECK(shared.sizes() == Sizes{3, 2});
  CHECK(LayerNorm{{3, 2}, &shared}(x, out, shared, {kFloat, {1, 1}}) ==
        Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
