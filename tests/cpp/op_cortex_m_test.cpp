// Int8 kernels: what they refuse, and calls in place. What they compute is in
// cortex_m_calls_test.cpp.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace cortex_m;

/// Arguments of a call, one of which a test replaces.
struct Argument {
  std::function<void(Call&)> add;
};

Argument tensor(const TestTensor& item) {
  return {[&item](Call& call) { call.add(item); }};
}
Argument none() {
  return {[](Call& call) { call.none(); }};
}
Argument integer(int64_t value) {
  return {[value](Call& call) { call.integer(value); }};
}
Argument number(double value) {
  return {[value](Call& call) { call.number(value); }};
}
Argument boolean(bool value) {
  return {[value](Call& call) { call.boolean(value); }};
}
Argument ints(std::vector<int64_t> items) {
  return {[items = std::move(items)](Call& call) { call.ints(items); }};
}

struct Good {
  KernelFn kernel;
  std::vector<Argument> arguments;

  /// The error with another argument at one place; nothing may be written.
  Error with(size_t at, Argument other) const {
    std::vector<Argument> changed = arguments;
    changed[at] = std::move(other);
    return run(changed);
  }
  Error run() const { return run(arguments); }

 private:
  Error run(const std::vector<Argument>& list) const {
    Call call;
    for (const Argument& argument : list) argument.add(call);
    return call.run(kernel);
  }
};

constexpr auto kChar = ScalarType::Char;
constexpr auto kInvalid = Error::InvalidArgument;

bool unwritten(const TestTensor& out) {
  for (size_t i = 0; i < out.bytes(); ++i) {
    if (out.data()[i] != TestTensor::kPattern) return false;
  }
  return true;
}

TEST_CASE("quantized_add and quantized_mul refuse what does not fit") {
  const TestTensor a(kChar, {2, 3});
  const TestTensor b(kChar, {3});
  const TestTensor out(kChar, {2, 3});
  const TestTensor wide(ScalarType::Short, {2, 3});
  const TestTensor other(kChar, {4});
  const int64_t one = 1 << 30;
  const Good add{
      quantized_add_out,
      {tensor(a), integer(0), integer(one), integer(0), tensor(b), integer(0),
       integer(one), integer(0), integer(0), integer(one), integer(-18),
       integer(-128), integer(127), tensor(out)}};
  for (const size_t zero : {1U, 5U, 8U}) {
    const int64_t most = zero == 8U ? 127 : 1920;
    CHECK(add.with(zero, integer(most + 1)) == kInvalid);
    CHECK(add.with(zero, integer(-most - 2)) == kInvalid);
    CHECK(add.with(zero + 1, integer(int64_t{1} << 31)) == kInvalid);
    CHECK(add.with(zero + 1, integer(INT64_MIN)) == kInvalid);
    CHECK(add.with(zero + 2, integer(32)) == kInvalid);
    CHECK(add.with(zero + 2, integer(-32)) == kInvalid);
  }
  for (const size_t limit : {11U, 12U}) {
    CHECK(add.with(limit, integer(-129)) == kInvalid);
    CHECK(add.with(limit, integer(128)) == kInvalid);
  }
  for (const size_t at : {0U, 4U, 13U}) {
    CHECK(add.with(at, tensor(wide)) == kInvalid);
    CHECK(add.with(at, tensor(other)) == kInvalid);
  }
  const Good mul{quantized_mul_out,
                 {tensor(a), integer(0), tensor(b), integer(0), integer(0),
                  integer(one), integer(-8), tensor(out)}};
  for (const size_t zero : {1U, 3U, 4U}) {
    const int64_t most = zero == 4U ? 127 : 32767;
    CHECK(mul.with(zero, integer(most + 1)) == kInvalid);
    CHECK(mul.with(zero, integer(-most - 2)) == kInvalid);
  }
  CHECK(mul.with(5, integer(int64_t{1} << 31)) == kInvalid);
  CHECK(mul.with(6, integer(-32)) == kInvalid);
  CHECK(mul.with(0, tensor(wide)) == kInvalid);
  CHECK(mul.with(2, tensor(other)) == kInvalid);
  CHECK(unwritten(out));
  CHECK(mul.run() == Error::Ok);
  CHECK(add.run() == Error::Ok);
}

TEST_CASE(
    "minimum, maximum, div, table and transpose refuse what does not fit") {
  const TestTensor a(kChar, {2, 3});
  const TestTensor out(kChar, {2, 3});
  const TestTensor turned(kChar, {3, 2});
  const TestTensor wide(ScalarType::Short, {2, 3});
  const TestTensor table(kChar, {256});
  const TestTensor small(kChar, {255});
  for (const KernelFn kernel : {minimum_out, maximum_out}) {
    const Good good{kernel, {tensor(a), tensor(a), tensor(out)}};
    for (const size_t at : {0U, 1U, 2U}) {
      CHECK(good.with(at, tensor(wide)) == kInvalid);
      CHECK(good.with(at, tensor(turned)) == kInvalid);
    }
  }
  const Good div{quantized_div_out,
                 {tensor(a), integer(0), tensor(a), integer(0), integer(0),
                  number(1), tensor(out)}};
  for (const size_t zero : {1U, 3U, 4U}) {
    CHECK(div.with(zero, integer(32768)) == kInvalid);
    CHECK(div.with(zero, integer(-32769)) == kInvalid);
  }
  for (const size_t at : {0U, 2U, 6U}) {
    CHECK(div.with(at, tensor(wide)) == kInvalid);
    CHECK(div.with(at, tensor(turned)) == kInvalid);
  }
  const Good map{quantized_activation_out,
                 {tensor(a), tensor(table), tensor(out)}};
  CHECK(map.with(0, tensor(wide)) == kInvalid);
  CHECK(map.with(1, tensor(small)) == kInvalid);
  CHECK(map.with(1, tensor(wide)) == kInvalid);
  CHECK(map.with(2, tensor(turned)) == kInvalid);
  const Good turn{transpose_out, {tensor(a), ints({1, 0}), tensor(turned)}};
  for (const auto& perm : std::vector<std::vector<int64_t>>{
           {0}, {0, 1, 2}, {0, 0}, {0, 2}, {-3, 0}, {1, -1}, {}}) {
    CHECK(turn.with(1, ints(perm)) == kInvalid);
  }
  CHECK(turn.with(2, tensor(out)) == kInvalid);
  CHECK(turn.with(0, tensor(wide)) == kInvalid);
  CHECK(unwritten(out));
  CHECK(unwritten(turned));
  CHECK(turn.run() == Error::Ok);
  CHECK(map.run() == Error::Ok);
  CHECK(div.run() == Error::Ok);
}

TEST_CASE("softmax refuses what does not fit") {
  const TestTensor x(kChar, {2, 3});
  const TestTensor out(kChar, {2, 3});
  const TestTensor wide(ScalarType::Short, {2, 3});
  const TestTensor turned(kChar, {3, 2});
  const Good good{softmax_out,
                  {tensor(x), integer(-1), integer(0), integer(-128),
                   integer(1 << 30), integer(20), integer(-100), tensor(out)}};
  CHECK(good.with(0, tensor(wide)) == kInvalid);
  CHECK(good.with(7, tensor(turned)) == kInvalid);
  CHECK(good.with(1, integer(2)) == kInvalid);
  CHECK(good.with(1, integer(-3)) == kInvalid);
  CHECK(good.with(3, integer(0)) == kInvalid);
  CHECK(good.with(4, integer(int64_t{1} << 31)) == kInvalid);
  CHECK(good.with(5, integer(-1)) == kInvalid);
  CHECK(good.with(5, integer(32)) == kInvalid);
  CHECK(good.with(6, integer(INT64_MIN)) == kInvalid);
  CHECK(unwritten(out));
  // Whatever the parameters, there is no undefined behaviour.
  for (const int64_t multiplier : {int64_t{INT32_MIN}, int64_t{INT32_MAX}}) {
    for (const int64_t shift : {0, 5, 26, 31}) {
      const Good hostile{softmax_out,
                         {tensor(x), integer(0), integer(0), integer(-128),
                          integer(multiplier), integer(shift),
                          integer(INT32_MIN), tensor(out)}};
      CHECK(hostile.run() == Error::Ok);
    }
  }
}

TEST_CASE("quantized_max_pool2d refuses what does not fit") {
  const TestTensor x(kChar, {1, 4, 5, 3});
  const TestTensor out(kChar, {1, 2, 2, 3});
  const TestTensor flat(kChar, {4, 5, 3});
  const TestTensor planes(kChar, {1, 3, 4, 5});  // not channels last
  const Good good{quantized_max_pool2d_nhwc_out,
                  {tensor(x), ints({2, 2}), ints({2, 2}), ints({0, 0}),
                   ints({1, 1}), boolean(false), integer(3), integer(3),
                   integer(-128), integer(127), tensor(out)}};
  for (const size_t list : {1U, 2U, 4U}) {
    CHECK(good.with(list, ints({0, 1})) == kInvalid);
    CHECK(good.with(list, ints({-1, 1})) == kInvalid);
    CHECK(good.with(list, ints({1, 2, 3})) == kInvalid);
    CHECK(good.with(list, ints({INT64_MAX, 1})) == kInvalid);
  }
  CHECK(good.with(3, ints({-1, 0})) == kInvalid);
  CHECK(good.with(3, ints({int64_t{1} << 40, 0})) == kInvalid);
  CHECK(good.with(3, ints({3, 0})) == kInvalid);  // a window without input
  CHECK(good.with(1, ints({6, 1})) == kInvalid);
  CHECK(good.with(6, integer(4)) == kInvalid);
  CHECK(good.with(7, integer(2)) == kInvalid);
  CHECK(good.with(8, integer(-129)) == kInvalid);
  CHECK(good.with(0, tensor(flat)) == kInvalid);
  CHECK(good.with(10, tensor(x)) == kInvalid);
  const Good first{quantized_max_pool2d_out, good.arguments};
  CHECK(first.with(0, tensor(planes)) == Error::NotSupported);
  CHECK(unwritten(out));
  CHECK(good.run() == Error::Ok);
}

TEST_CASE("quantized_transpose_conv2d refuses what does not fit") {
  const TestTensor x(kChar, {1, 2, 3, 4});
  const TestTensor w(kChar, {5, 2, 2, 4});
  const TestTensor thin(kChar, {5, 2, 2, 2});  // groups
  const auto bias = TestTensor::of<int32_t>({5}, {1, 2, 3, 4, 5});
  const auto few = TestTensor::of<int32_t>({4}, {1, 2, 3, 4});
  const TestTensor scratch(ScalarType::Byte, {0});
  const TestTensor out(kChar, {1, 4, 6, 5});
  const TestTensor empty(kChar, {1, 0, 3, 4});
  const Good good{
      quantized_transpose_conv2d_nhwc_out,
      {tensor(x), tensor(w), tensor(bias), ints({2, 2}), ints({0, 0}),
       ints({0, 0}), ints({1, 1}), integer(0), integer(0), tensor(bias),
       tensor(bias), integer(-128), integer(127), tensor(scratch),
       tensor(scratch), tensor(out)}};
  for (const size_t list : {3U, 6U}) {
    CHECK(good.with(list, ints({0, 1})) == kInvalid);
    CHECK(good.with(list, ints({1 << 30, 1})) == kInvalid);
    CHECK(good.with(list, ints({INT64_MAX, 1})) == kInvalid);
  }
  for (const size_t list : {4U, 5U}) {
    CHECK(good.with(list, ints({-1, 0})) == kInvalid);
    CHECK(good.with(list, ints({2, 0})) == kInvalid);
    CHECK(good.with(list, ints({1 << 30, 0})) == kInvalid);
  }
  for (const size_t per_channel : {2U, 9U, 10U}) {
    CHECK(good.with(per_channel, tensor(few)) == kInvalid);
    CHECK(good.with(per_channel, tensor(w)) == kInvalid);
  }
  CHECK(good.with(0, tensor(empty)) == kInvalid);
  CHECK(good.with(1, tensor(thin)) == kInvalid);
  CHECK(good.with(7, integer(129)) == kInvalid);
  CHECK(good.with(8, integer(128)) == kInvalid);
  CHECK(good.with(11, integer(-129)) == kInvalid);
  CHECK(good.with(15, tensor(x)) == kInvalid);
  CHECK(unwritten(out));
  CHECK(good.with(2, none()) == Error::Ok);
  CHECK(good.run() == Error::Ok);
}

TEST_CASE("shifts beyond 31 bits are refused") {
  const TestTensor x(kChar, {1, 2, 2, 2});
  const TestTensor w(kChar, {2, 1, 1, 2});
  const TestTensor deep(kChar, {1, 1, 1, 2});
  const TestTensor matrix(kChar, {2, 2});
  const TestTensor row(kChar, {1, 2});
  const auto ones = TestTensor::of<int32_t>({2}, {1, 1});
  const auto edges = TestTensor::of<int32_t>({2}, {-31, 31});
  const TestTensor scratch(ScalarType::Byte, {0});
  const TestTensor out(kChar, {1, 2, 2, 2});
  const TestTensor row_out(kChar, {1, 2});
  const Good conv{
      quantized_conv2d_nhwc_out,
      {tensor(x), tensor(w), none(), ints({1, 1}), ints({0, 0}), ints({1, 1}),
       integer(0), integer(0), tensor(ones), tensor(edges), integer(-128),
       integer(127), tensor(scratch), tensor(out)}};
  const Good depthwise{quantized_depthwise_conv2d_nhwc_out,
                       {tensor(x), tensor(deep), none(), ints({1, 1}),
                        ints({0, 0}), ints({1, 1}), integer(1), integer(0),
                        integer(0), tensor(ones), tensor(edges), integer(-128),
                        integer(127), tensor(scratch), tensor(out)}};
  const Good transposed{
      quantized_transpose_conv2d_nhwc_out,
      {tensor(x), tensor(w), none(), ints({1, 1}), ints({0, 0}), ints({0, 0}),
       ints({1, 1}), integer(0), integer(0), tensor(ones), tensor(edges),
       integer(-128), integer(127), tensor(scratch), tensor(scratch),
       tensor(out)}};
  const Good linear{quantized_linear_out,
                    {tensor(row), tensor(matrix), none(), none(), integer(0),
                     integer(0), integer(0), ints({1}), ints({-31}),
                     integer(127), integer(-128), tensor(row_out)}};
  for (const int32_t shift : {-32, 32, INT32_MIN, INT32_MAX}) {
    const auto shifts = TestTensor::of<int32_t>({2}, {0, shift});
    CHECK(conv.with(9, tensor(shifts)) == kInvalid);
    CHECK(depthwise.with(10, tensor(shifts)) == kInvalid);
    CHECK(transposed.with(10, tensor(shifts)) == kInvalid);
    CHECK(linear.with(8, ints({shift})) == kInvalid);
  }
  CHECK(unwritten(out));
  CHECK(unwritten(row_out));
  CHECK(conv.run() == Error::Ok);
  CHECK(depthwise.run() == Error::Ok);
  CHECK(transposed.run() == Error::Ok);
  CHECK(linear.run() == Error::Ok);
  CHECK(linear.with(8, ints({31})) == Error::Ok);
}

TEST_CASE("quantized_batch_matmul refuses what does not fit") {
  const TestTensor a(kChar, {2, 3, 4});
  const TestTensor b(kChar, {2, 5, 4});
  const TestTensor more(kChar, {3, 5, 4});
  const TestTensor deep(kChar, {2, 5, 3});
  const TestTensor flat(kChar, {5, 4});
  const TestTensor scratch(ScalarType::Byte, {0});
  const TestTensor out(kChar, {2, 3, 5});
  const Good good{
      quantized_batch_matmul_out,
      {tensor(a), integer(0), tensor(b), integer(0), integer(0),
       integer(1 << 30), integer(-8), tensor(scratch), tensor(out)}};
  for (const TestTensor* other : {&more, &deep, &flat}) {
    CHECK(good.with(2, tensor(*other)) == kInvalid);
  }
  CHECK(good.with(1, integer(129)) == kInvalid);
  CHECK(good.with(3, integer(-129)) == kInvalid);
  CHECK(good.with(4, integer(128)) == kInvalid);
  CHECK(good.with(5, integer(INT64_MAX)) == kInvalid);
  CHECK(good.with(6, integer(32)) == kInvalid);
  CHECK(good.with(8, tensor(a)) == kInvalid);
  CHECK(unwritten(out));
  CHECK(good.run() == Error::Ok);
}

TEST_CASE("elementwise int8 kernels work in place") {
  const auto a = TestTensor::of<int8_t>({4}, {-128, -1, 5, 127});
  const auto b = TestTensor::of<int8_t>({4}, {1, 2, 3, 4});
  CHECK(Call().add(a).add(b).add(a).run(minimum_out) == Error::Ok);
  CHECK(a.items<int8_t>() == std::vector<int8_t>{-128, -1, 3, 4});
  CHECK(Call().add(a).add(b).add(b).run(maximum_out) == Error::Ok);
  CHECK(b.items<int8_t>() == std::vector<int8_t>{1, 2, 3, 4});
  // a * b, halved twice
  CHECK(Call()
            .add(a)
            .integer(0)
            .add(b)
            .integer(0)
            .integer(0)
            .integer(1 << 30)
            .integer(-1)
            .add(a)
            .run(quantized_mul_out) == Error::Ok);
  CHECK(a.items<int8_t>() == std::vector<int8_t>{-32, -1, 3, 4});
  const TestTensor same(kChar, {2, 2});
  CHECK(Call().add(same).ints({1, 0}).add(same).run(transpose_out) ==
        Error::Ok);
  CHECK(Call()
            .add(same)
            .integer(1)
            .integer(0)
            .integer(-128)
            .integer(1 << 30)
            .integer(20)
            .integer(-100)
            .add(same)
            .run(softmax_out) == Error::Ok);
  CHECK(same.items<int8_t>() == std::vector<int8_t>{0, 0, 0, 0});
}

TEST_CASE("zero points of sums and products need not be items") {
  const int64_t one = 1 << 30;
  const auto a = TestTensor::of<int8_t>({3}, {2, -100, 127});
  const auto b = TestTensor::of<int8_t>({3}, {3, 100, -128});
  const auto product = TestTensor(ScalarType::Char, {3});
  CHECK(Call()
            .add(a)
            .integer(-579)
            .add(b)
            .integer(0)
            .integer(0)
            .integer(one)
            .integer(-8)
            .add(product)
            .run(quantized_mul_out) == Error::Ok);
  // (2 + 579) * 3 / 512 and so on.
  CHECK(product.items<int8_t>() == std::vector<int8_t>{3, 94, -128});
  const auto sum = TestTensor(ScalarType::Char, {3});
  CHECK(Call()
            .add(a)
            .integer(1920)
            .integer(one)
            .integer(0)
            .add(b)
            .integer(-1920)
            .integer(one)
            .integer(0)
            .integer(0)
            .integer(one)
            .integer(-18)
            .integer(-128)
            .integer(127)
            .add(sum)
            .run(quantized_add_out) == Error::Ok);
  CHECK(sum.items<int8_t>() == std::vector<int8_t>{5, 0, -1});
}

}  // namespace
}  // namespace orch::test
