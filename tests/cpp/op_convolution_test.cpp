#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using portable::convolution_out;

using Ints = std::vector<int64_t>;

/// A convolution; the defaults are those of torch.conv2d.
struct Conv {
  Ints stride = {1, 1};
  Ints padding = {0, 0};
  Ints dilation = {1, 1};
  bool transposed = false;
  Ints output_padding = {0, 0};
  int64_t groups = 1;
  const TestTensor* bias = nullptr;

  Error operator()(const TestTensor& input, const TestTensor& weight,
                   const TestTensor& out) const {
    Call call;
    call.add(input).add(weight);
    bias == nullptr ? call.none() : call.add(*bias);
    return call.ints(stride)
        .ints(padding)
        .ints(dilation)
        .boolean(transposed)
        .ints(output_padding)
        .integer(groups)
        .add(out)
        .run(convolution_out);
  }
};

TestTensor floats(Sizes sizes) { return {ScalarType::Float, std::move(sizes)}; }

TEST_CASE("convolution with padding, stride and bias") {
  const auto x = TestTensor::of<float>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto w = TestTensor::of<float>({2, 1, 2, 2}, {1, 10, 100, 1000,  //
                                                      0, 0, 0, 1});
  const auto bias = TestTensor::of<float>({2}, {0.5, -1});
  const TestTensor out = floats({1, 2, 2, 2});
  Conv conv;
  conv.stride = {2, 2};
  conv.padding = {1, 1};
  conv.bias = &bias;
  CHECK(conv(x, w, out) == Error::Ok);
  CHECK(out.items<float>() ==
        std::vector<float>{1000.5, 3200.5, 40.5, 65.5, 0, 2, -1, -1});
}

TEST_CASE("transposed convolution spreads each input") {
  const auto x = TestTensor::of<float>({1, 1, 2}, {1, 2});
  const auto w = TestTensor::of<float>({1, 1, 3}, {1, 10, 100});
  const TestTensor out = floats({1, 1, 6});
  Conv conv;
  conv.stride = {2};
  conv.padding = {0};
  conv.dilation = {1};
  conv.transposed = true;
  conv.output_padding = {1};
  CHECK(conv(x, w, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{1, 10, 102, 20, 200, 0});
}

TEST_CASE("the sum does not depend on the neighbours it is computed with") {
  // Five equal output channels: four in a block, one alone.
  std::vector<float> x, w;
  for (int i = 0; i < 27; ++i) x.push_back(1.0F / static_cast<float>(i + 1));
  for (int i = 0; i < 5 * 27; ++i) {
    w.push_back(1.0F + 0.1F * static_cast<float>(i % 27));
  }
  const TestTensor out = floats({1, 5, 1, 1});
  CHECK(Conv()(TestTensor::of<float>({1, 3, 3, 3}, x),
               TestTensor::of<float>({5, 3, 3, 3}, w), out) == Error::Ok);
  float sum = 0;
  for (size_t i = 0; i < 27; ++i) sum += x[i] * w[i];
  for (const float item : out.items<float>()) CHECK(item == sum);
}

TEST_CASE("convolution over padding alone is the bias") {
  const auto bias = TestTensor::of<float>({1}, {3});
  const TestTensor out = floats({1, 1, 9, 1});
  Conv conv;
  conv.padding = {4, 0};
  conv.bias = &bias;
  CHECK(conv(TestTensor::of<float>({1, 1, 1, 1}, {5}),
             TestTensor::of<float>({1, 1, 1, 1}, {2}), out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{3, 3, 3, 3, 13, 3, 3, 3, 3});
}

TEST_CASE("convolution without input channels or without a batch") {
  const TestTensor out = floats({1, 2, 1, 1});
  CHECK(Conv()(floats({1, 0, 2, 2}), floats({2, 0, 2, 2}), out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{0, 0});
  CHECK(Conv()(floats({0, 1, 2, 2}), floats({2, 1, 2, 2}),
               floats({0, 2, 1, 1})) == Error::Ok);
}

TEST_CASE("convolution gives a dynamic output its sizes") {
  const auto out = TestTensor(ScalarType::Float, {1, 2, 4, 4}).dynamic();
  CHECK(Conv()(floats({1, 1, 4, 3}), floats({2, 1, 2, 2}), out) == Error::Ok);
  CHECK(out.sizes() == Sizes{1, 2, 3, 2});
  CHECK(Conv()(floats({1, 1, 9, 9}), floats({2, 1, 2, 2}), out) ==
        Error::ShapeTooLarge);
}

TEST_CASE("convolution refuses parameters out of range") {
  const TestTensor x = floats({1, 2, 4, 4});
  const TestTensor w = floats({2, 2, 2, 2});
  const TestTensor out = floats({1, 2, 3, 3});
  const auto refused = [&](auto change) {
    Conv conv;
    change(conv);
    return conv(x, w, out) == Error::InvalidArgument;
  };
  const int64_t huge[] = {INT32_MAX, 1LL << 31, 1LL << 32, (1LL << 32) + 1,
                          INT64_MAX, INT64_MIN, -1};
  for (const int64_t value : huge) {
    CAPTURE(value);
    CHECK(refused([&](Conv& c) { c.stride = {value, 1}; }));
    CHECK(refused([&](Conv& c) { c.stride = {1, value}; }));
    CHECK(refused([&](Conv& c) { c.padding = {value, 0}; }));
    CHECK(refused([&](Conv& c) { c.padding = {0, value}; }));
    CHECK(refused([&](Conv& c) { c.dilation = {value, 1}; }));
    CHECK(refused([&](Conv& c) { c.output_padding = {0, value}; }));
    CHECK(refused([&](Conv& c) { c.groups = value; }));
    for (const bool transposed : {false, true}) {
      CHECK(refused([&](Conv& c) {
        c.transposed = transposed;
        c.stride = c.padding = c.dilation = {value};
      }));
    }
  }
  CHECK(refused([](Conv& c) { c.stride = {0, 1}; }));
  CHECK(refused([](Conv& c) { c.dilation = {0, 1}; }));
  CHECK(refused([](Conv& c) { c.groups = 0; }));
  CHECK(refused([](Conv& c) { c.groups = 2; }));
  CHECK(refused([](Conv& c) { c.stride = {}; }));
  CHECK(refused([](Conv& c) { c.stride = {1, 1, 1}; }));
  CHECK(refused([](Conv& c) { c.dilation = {4, 1}; }));
  CHECK(refused([](Conv& c) { c.padding = {1 << 30, 0}; }));
  CHECK(refused([](Conv& c) {
    c.transposed = true;
    c.output_padding = {1, 0};
  }));
  CHECK(refused([](Conv& c) {
    c.transposed = true;
    c.padding = {3, 0};
  }));
  CHECK(refused([](Conv& c) {
    c.transposed = true;
    c.stride = {1 << 30, 1};
  }));
}

TEST_CASE("a kernel larger than the padded input does not fit") {
  // (4 - 5) / 2 + 1 is 1 where division truncates.
  Conv conv;
  conv.stride = {2, 1};
  CHECK(conv(floats({1, 1, 4, 1}), floats({1, 1, 5, 1}),
             floats({1, 1, 1, 1})) == Error::InvalidArgument);
}

TEST_CASE("a convolution may have a single, huge step") {
  Conv conv;
  conv.stride = {1 << 30};
  const TestTensor out = floats({1, 2, 1, 1});
  CHECK(conv(floats({1, 2, 4, 4}), floats({2, 2, 2, 2}), out) == Error::Ok);
}

TEST_CASE("convolution refuses tensors that do not fit") {
  const TestTensor x = floats({1, 2, 4, 4});
  const TestTensor w = floats({2, 2, 2, 2});
  const TestTensor out = floats({1, 2, 3, 3});
  Conv conv;
  CHECK(conv(x, floats({2, 3, 2, 2}), out) == Error::InvalidArgument);
  CHECK(conv(x, floats({2, 2, 2}), out) == Error::InvalidArgument);
  CHECK(conv(x, floats({2, 2, 5, 2}), out) == Error::InvalidArgument);
  CHECK(conv(x, floats({2, 2, 0, 2}), out) == Error::InvalidArgument);
  CHECK(conv(x, floats({0, 2, 2, 2}), out) == Error::InvalidArgument);
  CHECK(conv(x, w, floats({1, 2, 3, 4})) == Error::InvalidArgument);
  CHECK(conv(x, {ScalarType::Half, {2, 2, 2, 2}}, out) ==
        Error::InvalidArgument);
  CHECK(conv(x, w, {ScalarType::Double, {1, 2, 3, 3}}) ==
        Error::InvalidArgument);
  CHECK(conv(floats({1, 1, 1, 1, 1, 1}), floats({1, 1, 1, 1, 1, 1}), out) ==
        Error::NotSupported);
  CHECK(conv(floats({1, 2, 4, 4, 4}), floats({2, 2, 2, 2, 2}), out) ==
        Error::InvalidArgument);
  CHECK(conv(floats({4, 4}), floats({2, 2}), out) == Error::NotSupported);
  for (const Sizes& sizes : {Sizes{1}, Sizes{3}, Sizes{}, Sizes{1, 2}}) {
    const TestTensor bias = floats(sizes);
    conv.bias = &bias;
    CHECK(conv(x, w, out) == Error::InvalidArgument);
  }
  const TestTensor halves(ScalarType::Half, {2});
  conv.bias = &halves;
  CHECK(conv(x, w, out) == Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {1, 1, 1, 1});
  CHECK(Conv()(bools, bools, {ScalarType::Bool, {1, 1, 1, 1}}) ==
        Error::DtypeNotSelected);
  const auto same = TestTensor(ScalarType::Float, {1, 2, 4, 4}).dynamic();
  CHECK(Conv()(same, w, same) == Error::InvalidArgument);
}

TEST_CASE("volumes are convolved image by image") {
  const auto x = TestTensor::of<float>({1, 1, 2, 1, 2}, {1, 2, 3, 4});
  const auto w = TestTensor::of<float>({1, 1, 2, 1, 1}, {10, 1});
  const TestTensor out = floats({1, 1, 3, 1, 2});
  Conv conv;
  conv.stride = {1};
  conv.padding = {1, 0, 0};
  conv.dilation = {1};
  conv.output_padding = {0};
  CHECK(conv(x, w, out) == Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{1, 2, 13, 24, 30, 40});
}

TEST_CASE("gradients of a convolution, and those that are not wanted") {
  const auto x = TestTensor::of<float>({1, 1, 3}, {1, 2, 3});
  const auto w = TestTensor::of<float>({1, 1, 2}, {10, 100});
  const auto gradient = TestTensor::of<float>({1, 1, 2}, {1, 5});
  const auto run = [&](const std::vector<uint8_t>& mask, const TestTensor& of_x,
                       const TestTensor& of_w, const TestTensor& of_bias) {
    return Call()
        .add(gradient)
        .add(x)
        .add(w)
        .ints({1})
        .ints({1})
        .ints({0})
        .ints({1})
        .boolean(false)
        .ints({0})
        .integer(1)
        .bools(mask)
        .add(of_x)
        .add(of_w)
        .add(of_bias)
        .run(portable::convolution_backward_out);
  };
  const TestTensor of_x = floats({1, 1, 3});
  const TestTensor of_w = floats({1, 1, 2});
  const TestTensor of_bias = floats({1});
  CHECK(run({1, 1, 1}, of_x, of_w, of_bias) == Error::Ok);
  CHECK(of_x.items<float>() == std::vector<float>{10, 150, 500});
  CHECK(of_w.items<float>() == std::vector<float>{11, 17});
  CHECK(of_bias.items<float>() == std::vector<float>{6});
  const TestTensor other(ScalarType::Int, {7});
  CHECK(run({0, 1, 0}, other, of_w, other) == Error::Ok);
  CHECK(run({1, 1, 0}, other, of_w, other) == Error::InvalidArgument);
  CHECK(run({1, 1}, of_x, of_w, of_bias) == Error::InvalidArgument);
  // One tensor cannot have the sizes of two.
  const auto shared = TestTensor(ScalarType::Float, {1, 1, 3}).dynamic();
  CHECK(run({1, 1, 0}, shared, shared, of_bias) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
