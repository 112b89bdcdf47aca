#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::_native_batch_norm_legit_no_training_out;

struct BatchNorm {
  const TestTensor* weight = nullptr;
  const TestTensor* bias = nullptr;
  TestTensor statistics1 = {ScalarType::Float, {0}};
  TestTensor statistics2 = {ScalarType::Float, {0}};

  Error operator()(const TestTensor& input, const TestTensor& mean,
                   const TestTensor& var, const TestTensor& out) const {
    Call call;
    call.add(input);
    weight == nullptr ? call.none() : call.add(*weight);
    bias == nullptr ? call.none() : call.add(*bias);
    return call.add(mean)
        .add(var)
        .number(0.1)
        .number(1)
        .add(out)
        .add(statistics1)
        .add(statistics2)
        .run(_native_batch_norm_legit_no_training_out);
  }
};

TEST_CASE("batch norm normalizes each channel") {
  const auto x = TestTensor::of<float>({1, 2, 2}, {1, 2, 3, 4});
  const auto mean = TestTensor::of<float>({2}, {1, 2});
  const auto var = TestTensor::of<float>({2}, {3, 0});  // eps is 1
  const auto weight = TestTensor::of<float>({2}, {4, 1});
  const auto bias = TestTensor::of<float>({2}, {10, 20});
  const TestTensor out(ScalarType::Float, {1, 2, 2});
  BatchNorm norm;
  CHECK(norm(x, mean, var, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 0.5, 1, 2});
  norm.weight = &weight;
  norm.bias = &bias;
  CHECK(norm(x, mean, var, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{10, 12, 21, 22});
}

TEST_CASE("batch norm leaves the statistics of training empty") {
  const BatchNorm norm = {nullptr, nullptr,
                          TestTensor(ScalarType::Float, {2}).dynamic()};
  const auto x = TestTensor::of<float>({1, 1}, {1});
  const auto one = TestTensor::of<float>({1}, {1});
  CHECK(norm(x, one, one, {ScalarType::Float, {1, 1}}) == Error::Ok);
  CHECK(norm.statistics1.sizes() == Sizes{0});
  const BatchNorm fixed = {nullptr, nullptr, {ScalarType::Float, {1}}};
  CHECK(fixed(x, one, one, {ScalarType::Float, {1, 1}}) ==
        Error::InvalidArgument);
}

TEST_CASE("batch norm of halves takes parameters of Float") {
  const auto x = TestTensor::of<Half>({1, 1}, {Half(3)});
  const auto mean = TestTensor::of<float>({1}, {1});
  const auto var = TestTensor::of<float>({1}, {0});
  const TestTensor out(ScalarType::Half, {1, 1});
  const BatchNorm norm;
  CHECK(norm(x, mean, var, out) == Error::Ok);
  CHECK(static_cast<float>(out.items<Half>()[0]) == 2);
  const TestTensor half(ScalarType::Half, {1});
  const TestTensor floats(ScalarType::Float, {1, 1});
  CHECK(norm(floats, half, half, {ScalarType::Float, {1, 1}}) ==
        Error::InvalidArgument);
  CHECK(norm(x, {ScalarType::BFloat16, {1}}, var, out) ==
        Error::InvalidArgument);
}

TEST_CASE("batch norm refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {1, 2});
  const TestTensor two(ScalarType::Float, {2});
  const TestTensor one(ScalarType::Float, {1});
  const TestTensor out(ScalarType::Float, {1, 2});
  BatchNorm norm;
  CHECK(norm(x, one, two, out) == Error::InvalidArgument);
  CHECK(norm(x, two, one, out) == Error::InvalidArgument);
  CHECK(norm(x, two, {ScalarType::Float, {1, 2}}, out) ==
        Error::InvalidArgument);
  CHECK(norm(two, two, two, {ScalarType::Float, {2}}) ==
        Error::InvalidArgument);
  CHECK(norm(x, two, two, {ScalarType::Float, {2, 1}}) ==
        Error::InvalidArgument);
  CHECK(norm(x, two, two, {ScalarType::Half, {1, 2}}) ==
        Error::InvalidArgument);
  norm.weight = &one;
  CHECK(norm(x, two, two, out) == Error::InvalidArgument);
  norm.weight = nullptr;
  norm.bias = &one;
  CHECK(norm(x, two, two, out) == Error::InvalidArgument);
  norm.bias = nullptr;
  const TestTensor ints(ScalarType::Int, {1, 1});
  const TestTensor number(ScalarType::Int, {1});
  CHECK(norm(ints, number, number, {ScalarType::Int, {1, 1}}) ==
        Error::DtypeNotSelected);
}

TEST_CASE("batch norm does not empty one of its own tensors") {
  // The statistics are emptied; they must not be the input or the output.
  const auto x = TestTensor(ScalarType::Float, {1, 2}).dynamic();
  const auto mean = TestTensor(ScalarType::Float, {2}).dynamic();
  const TestTensor out(ScalarType::Float, {1, 2});
  const TestTensor none(ScalarType::Float, {0});
  const auto call = [&](const TestTensor& a, const TestTensor& b) {
    return Call()
        .add(x)
        .none()
        .none()
        .add(mean)
        .add(mean)
        .number(0)
        .number(1)
        .add(out)
        .add(a)
        .add(b)
        .run(_native_batch_norm_legit_no_training_out);
  };
  CHECK(call(mean, none) == Error::InvalidArgument);
  CHECK(call(none, mean) == Error::InvalidArgument);
  CHECK(call(x, none) == Error::InvalidArgument);
  CHECK(call(none, out) == Error::InvalidArgument);
  CHECK(mean.sizes() == Sizes{2});
}

}  // namespace
}  // namespace orch::test
