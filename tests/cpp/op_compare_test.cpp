// Comparisons, logical_not, logical_xor, bitwise_and, _or, _not, where, clamp.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

const float kNaN = std::numeric_limits<float>::quiet_NaN();

using Bools = std::vector<bool>;

Bools compare(KernelFn kernel, const TestTensor& a, const TestTensor& b) {
  const TestTensor out(ScalarType::Bool, a.sizes());
  CHECK(Call().add(a).add(b).add(out).run(kernel) == Error::Ok);
  return out.items<bool>();
}

TEST_CASE("comparisons of floats; NaN is unequal to everything") {
  const auto a = TestTensor::of<float>({4}, {1, 2, 3, kNaN});
  const auto b = TestTensor::of<float>({4}, {2, 2, 2, kNaN});
  CHECK(compare(eq_Tensor_out, a, b) == Bools{false, true, false, false});
  CHECK(compare(ne_Tensor_out, a, b) == Bools{true, false, true, true});
  CHECK(compare(gt_Tensor_out, a, b) == Bools{false, false, true, false});
  CHECK(compare(ge_Tensor_out, a, b) == Bools{false, true, true, false});
  CHECK(compare(lt_Tensor_out, a, b) == Bools{true, false, false, false});
  CHECK(compare(le_Tensor_out, a, b) == Bools{true, true, false, false});
}

TEST_CASE("a number becomes one of what it is compared with") {
  const auto bytes = TestTensor::of<uint8_t>({2}, {44, 45});
  const TestTensor out(ScalarType::Bool, {2});
  CHECK(Call().add(bytes).integer(300).add(out).run(eq_Scalar_out) ==
        Error::Ok);
  CHECK(out.items<bool>() == Bools{true, false});
  CHECK(Call().add(bytes).number(44.5).add(out).run(gt_Scalar_out) ==
        Error::Ok);
  CHECK(out.items<bool>() == Bools{false, true});
  const auto floats = TestTensor::of<float>({2}, {0.1F, 0.2F});
  CHECK(Call().add(floats).number(0.1).add(out).run(eq_Scalar_out) ==
        Error::Ok);
  CHECK(out.items<bool>() == Bools{true, false});
  const auto bools = TestTensor::of<bool>({2}, {false, true});
  CHECK(Call().add(bools).integer(2).add(out).run(lt_Scalar_out) == Error::Ok);
  CHECK(out.items<bool>() == Bools{true, true});
}

TEST_CASE("truth values are stored as the output has them") {
  const auto a = TestTensor::of<int64_t>({2}, {INT64_MIN, 3});
  const TestTensor halves(ScalarType::Half, {2});
  CHECK(Call().add(a).integer(0).add(halves).run(lt_Scalar_out) == Error::Ok);
  CHECK(halves.items<Half>()[0].bits == Half(1.0F).bits);
  CHECK(halves.items<Half>()[1].bits == 0);
  const TestTensor bytes(ScalarType::Byte, {2});
  CHECK(Call().add(a).add(bytes).run(logical_not_out) == Error::Ok);
  CHECK(bytes.items<uint8_t>() == std::vector<uint8_t>{0, 0});
}

TEST_CASE("comparisons refuse what does not fit") {
  const auto a = TestTensor::of<float>({2}, {1, 2});
  const TestTensor out(ScalarType::Bool, {3});
  CHECK(Call().add(a).integer(1).add(out).run(ge_Scalar_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(a).add(a).add(out).run(le_Tensor_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(a).add(out).run(logical_not_out) == Error::InvalidArgument);
  const TestTensor shorts(ScalarType::UInt16, {3});
  CHECK(Call().add(shorts).integer(1).add(out).run(ne_Scalar_out) ==
        Error::DtypeNotSelected);
}

TEST_CASE("bitwise_and") {
  const auto a = TestTensor::of<int32_t>({3}, {12, -1, 7});
  const TestTensor out(ScalarType::Int, {3});
  CHECK(Call().add(a).integer(10).add(out).run(bitwise_and_Scalar_out) ==
        Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{8, 10, 2});
  CHECK(Call().add(a).number(10).add(out).run(bitwise_and_Scalar_out) ==
        Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {3});
  CHECK(Call().add(a).integer(1).add(bools).run(bitwise_and_Scalar_out) ==
        Error::InvalidArgument);
  const auto bits = TestTensor::of<bool>({3}, {true, false, true});
  CHECK(Call().add(a).add(bits).add(out).run(bitwise_and_Tensor_out) ==
        Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{0, 0, 1});
}

TEST_CASE("bitwise_or") {
  const auto a = TestTensor::of<int32_t>({3}, {12, -1, 5});
  const TestTensor out(ScalarType::Int, {3});
  CHECK(Call().add(a).integer(10).add(out).run(bitwise_or_Scalar_out) ==
        Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{14, -1, 15});
  CHECK(Call().add(a).number(10).add(out).run(bitwise_or_Scalar_out) ==
        Error::InvalidArgument);
  const TestTensor bools(ScalarType::Bool, {3});
  CHECK(Call().add(a).integer(1).add(bools).run(bitwise_or_Scalar_out) ==
        Error::InvalidArgument);
  const auto bits = TestTensor::of<bool>({3}, {true, false, true});
  CHECK(Call().add(a).add(bits).add(out).run(bitwise_or_Tensor_out) ==
        Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{13, -1, 5});
  const auto floats = TestTensor::of<float>({3}, {1, 2, 3});
  CHECK(Call().add(floats).add(floats).add(floats).run(bitwise_or_Tensor_out) ==
        Error::DtypeNotSelected);
}

TEST_CASE("bitwise_not of integers is that of bits, of Bool the other value") {
  const auto a = TestTensor::of<uint8_t>({3}, {0, 255, 5});
  const TestTensor out(ScalarType::Byte, {3});
  CHECK(Call().add(a).add(out).run(bitwise_not_out) == Error::Ok);
  CHECK(out.items<uint8_t>() == std::vector<uint8_t>{255, 0, 250});
  const auto bools = TestTensor::of<bool>({2}, {true, false});
  CHECK(Call().add(bools).add(bools).run(bitwise_not_out) == Error::Ok);
  CHECK(bools.items<bool>() == Bools{false, true});
  CHECK(Call().add(a).add({ScalarType::Int, {3}}).run(bitwise_not_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(a).add({ScalarType::Byte, {4}}).run(bitwise_not_out) ==
        Error::InvalidArgument);
  const TestTensor floats(ScalarType::Float, {2});
  CHECK(Call().add(floats).add(floats).run(bitwise_not_out) ==
        Error::DtypeNotSelected);
}

TEST_CASE("logical_xor compares truth, not bits") {
  const auto a = TestTensor::of<int32_t>({4}, {0, 6, 0, 5});
  const auto b = TestTensor::of<int32_t>({4}, {0, 1, 2, 0});
  CHECK(compare(logical_xor_out, a, b) == Bools{false, false, true, true});
  const auto f = TestTensor::of<float>({4}, {kNaN, 0.25F, -0.0F, 0});
  CHECK(compare(logical_xor_out, a, f) == Bools{true, false, false, true});
  const TestTensor sums(ScalarType::Float, {4});
  CHECK(Call().add(a).add(b).add(sums).run(logical_xor_out) == Error::Ok);
  CHECK(sums.items<float>() == std::vector<float>{0, 0, 1, 1});
  CHECK(
      Call().add(a).add(b).add({ScalarType::Bool, {3}}).run(logical_xor_out) ==
      Error::InvalidArgument);
}

TEST_CASE("where broadcasts three tensors") {
  const auto mask = TestTensor::of<bool>({2, 1}, {true, false});
  const auto a = TestTensor::of<float>({3}, {1, 2, 3});
  const auto b = TestTensor::of<float>({}, {9});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(Call().add(mask).add(a).add(b).add(out).run(where_self_out) ==
        Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{1, 2, 3, 9, 9, 9});
  const TestTensor wrong(ScalarType::Float, {3, 3});
  CHECK(Call().add(mask).add(a).add(b).add(wrong).run(where_self_out) ==
        Error::InvalidArgument);
  const TestTensor four(ScalarType::Float, {4});
  CHECK(Call().add(mask).add(a).add(four).add(out).run(where_self_out) ==
        Error::InvalidArgument);
}

TEST_CASE("where in place, and not over its condition") {
  const auto mask = TestTensor::of<uint8_t>({3}, {0, 1, 255});
  const auto a = TestTensor::of<int32_t>({3}, {1, 2, 3});
  const auto b = TestTensor::of<int32_t>({3}, {7, 8, 9});
  CHECK(Call().add(mask).add(a).add(b).add(b).run(where_self_out) == Error::Ok);
  CHECK(b.items<int32_t>() == std::vector<int32_t>{7, 2, 3});
  CHECK(Call().add(mask).add(mask).add(mask).add(mask).run(where_self_out) ==
        Error::NotSupported);
}

TEST_CASE("where refuses other dtypes") {
  const auto mask = TestTensor::of<bool>({1}, {true});
  const auto a = TestTensor::of<int32_t>({1}, {1});
  const auto b = TestTensor::of<float>({1}, {2});
  CHECK(Call().add(mask).add(a).add(b).add(a).run(where_self_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(a).add(a).add(a).add(a).run(where_self_out) ==
        Error::InvalidArgument);
  const TestTensor shorts(ScalarType::UInt16, {1});
  CHECK(Call().add(mask).add(shorts).add(shorts).add(shorts).run(
            where_self_out) == Error::DtypeNotSelected);
}

TEST_CASE("clamp: the upper limit wins, NaN stays") {
  const auto x = TestTensor::of<float>({4}, {-1, 2, 9, kNaN});
  const TestTensor out(ScalarType::Float, {4});
  CHECK(Call().add(x).integer(0).number(2.5).add(out).run(clamp_out) ==
        Error::Ok);
  CHECK(out.items<float>()[0] == 0);
  CHECK(out.items<float>()[1] == 2);
  CHECK(out.items<float>()[2] == 2.5F);
  CHECK(std::isnan(out.items<float>()[3]));
  CHECK(Call().add(x).integer(5).integer(3).add(out).run(clamp_out) ==
        Error::Ok);
  CHECK(out.items<float>()[1] == 3);
  for (const bool low : {true, false}) {
    Call call;
    call.add(x);
    if (low) call.number(kNaN).none();
    if (!low) call.none().number(kNaN);
    CHECK(call.add(out).run(clamp_out) == Error::Ok);
    for (const float item : out.items<float>()) CHECK(std::isnan(item));
  }
}

TEST_CASE("clamp refuses limits that the dtype does not have") {
  const auto x = TestTensor::of<uint8_t>({2}, {1, 200});
  const TestTensor out(ScalarType::Byte, {2});
  CHECK(Call().add(x).none().none().add(out).run(clamp_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).integer(-1).none().add(out).run(clamp_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).none().integer(256).add(out).run(clamp_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).number(0.5).none().add(out).run(clamp_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).none().integer(255).add(out).run(clamp_out) == Error::Ok);
  const auto y = TestTensor::of<int64_t>({1}, {INT64_MIN});
  CHECK(Call().add(y).integer(INT64_MIN + 1).none().add(y).run(clamp_out) ==
        Error::Ok);
  CHECK(y.items<int64_t>()[0] == INT64_MIN + 1);
  const auto z = TestTensor::of<int8_t>({1}, {5});
  CHECK(Call().add(z).integer(-129).none().add(z).run(clamp_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(z).integer(-128).integer(-2).add(z).run(clamp_out) ==
        Error::Ok);
  CHECK(z.items<int8_t>()[0] == -2);
}

}  // namespace
}  // namespace orch::test
