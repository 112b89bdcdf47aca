// Arithmetic with numbers, rounding, shifts, limits and fills: what they
// refuse, and what PyTorch does not give the same everywhere.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("numbers of a higher category do not fit") {
  const auto x = TestTensor::of<int32_t>({2}, {1, -2});
  const TestTensor floats(ScalarType::Float, {2});
  CHECK(Call().add(x).number(0.5).add(x).run(mul_Scalar_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).number(0.5).add(floats).run(mul_Scalar_out) == Error::Ok);
  CHECK(floats.items<float>() == std::vector<float>{0.5F, -1});
  for (const KernelFn kernel :
       {add_Scalar_out, sub_Scalar_out, rsub_Scalar_out}) {
    const auto with_alpha = [&](double alpha) {
      return Call().add(x).integer(3).number(alpha).add(x).run(kernel);
    };
    CHECK(with_alpha(1.5) == Error::InvalidArgument);
    CHECK(Call().add(x).integer(3).boolean(true).add(x).run(kernel) ==
          Error::InvalidArgument);
  }
  CHECK(Call().add(x).integer(2).add(x).run(div_Scalar_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).number(1.5).add(floats).run(
            bitwise_left_shift_Tensor_Scalar_out) == Error::InvalidArgument);
}

TEST_CASE("integers are not divided by 0") {
  const auto x = TestTensor::of<int8_t>({2}, {-128, 7});
  const auto zero = TestTensor::of<int8_t>({2}, {-1, 0});
  const TestTensor out(ScalarType::Char, {2});
  for (const KernelFn kernel :
       {remainder_Tensor_out, fmod_Tensor_out, floor_divide_out}) {
    CHECK(Call().add(x).add(zero).add(out).run(kernel) ==
          Error::InvalidArgument);
  }
  const auto divide = [&](int64_t by, const char* mode) {
    return Call().add(x).integer(by).text(mode).add(out).run(
        div_Scalar_mode_out);
  };
  CHECK(divide(0, "floor") == Error::InvalidArgument);
  CHECK(divide(256, "trunc") == Error::InvalidArgument);  // wraps around to 0
  CHECK(divide(2, "ceil") == Error::InvalidArgument);
  CHECK(divide(-1, "floor") == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{-128, -7});
}

TEST_CASE("remainders of enormous quotients are exact") {
  // PyTorch's vectors give NaN.
  const auto x = TestTensor::of<double>({1}, {1e308});
  const auto y = TestTensor::of<double>({1}, {3});
  const TestTensor out(ScalarType::Double, {1});
  for (const KernelFn kernel : {remainder_Tensor_out, fmod_Tensor_out}) {
    CHECK(Call().add(x).add(y).add(out).run(kernel) == Error::Ok);
    CHECK(out.items<double>()[0] == std::fmod(1e308, 3));
  }
}

TEST_CASE("hardtanh of integers takes limits that they hold") {
  const auto x = TestTensor::of<uint8_t>({3}, {0, 5, 255});
  const TestTensor out(ScalarType::Byte, {3});
  const auto run = [&](double low, double high) {
    return Call().add(x).number(low).number(high).add(out).run(hardtanh_out);
  };
  CHECK(run(-0.5, 2.9) == Error::Ok);
  CHECK(out.items<uint8_t>() == std::vector<uint8_t>{0, 2, 2});
  CHECK(run(-1, 1) == Error::InvalidArgument);
  CHECK(run(0, 256) == Error::InvalidArgument);
}

TEST_CASE("clamp by tensors needs one, and keeps rows apart") {
  const auto x = TestTensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto low = TestTensor::of<float>({2, 1}, {2, 5});
  const auto high = TestTensor::of<float>({3}, {9, 4, 1});
  const TestTensor out(ScalarType::Float, {2, 3});
  CHECK(Call().add(x).none().none().add(out).run(clamp_Tensor_out) ==
        Error::InvalidArgument);
  CHECK(Call().add(x).add(low).add(high).add(out).run(clamp_Tensor_out) ==
        Error::Ok);
  CHECK(out.items<float>() == std::vector<float>{2, 2, 1, 5, 4, 1});
  const TestTensor ints(ScalarType::Int, {2, 3});
  CHECK(Call().add(x).add(low).none().add(ints).run(clamp_Tensor_out) ==
        Error::InvalidArgument);
}

TEST_CASE("a mask may hold any bytes") {
  const auto x = TestTensor::of<int16_t>({3}, {1, 2, 3});
  const TestTensor mask(ScalarType::Bool, {3});
  const uint8_t bytes[] = {0, 1, 2};
  memcpy(mask.data(), bytes, sizeof bytes);
  const TestTensor out(ScalarType::Short, {3});
  const auto fill = [&](const TestTensor& by, const TestTensor& to) {
    return Call().add(x).add(by).number(-7.9).add(to).run(
        masked_fill_Scalar_out);
  };
  CHECK(fill(mask, out) == Error::Ok);
  CHECK(out.items<int16_t>() == std::vector<int16_t>{1, -7, -7});
  CHECK(fill(x, out) == Error::InvalidArgument);
  CHECK(fill(mask, {ScalarType::Int, {3}}) == Error::InvalidArgument);
}

TEST_CASE("fill takes one number without dimensions") {
  const TestTensor x(ScalarType::Int, {3});
  const TestTensor out(ScalarType::Int, {3});
  const auto fill = [&](const TestTensor& value, const TestTensor& to) {
    return Call().add(x).add(value).add(to).run(fill_Tensor_out);
  };
  CHECK(fill(TestTensor::of<double>({}, {kNan}), out) == Error::Ok);
  CHECK(out.items<int32_t>() == std::vector<int32_t>{0, 0, 0});
  CHECK(fill(TestTensor::of<double>({}, {-1e300}), out) == Error::Ok);
  CHECK(out.items<int32_t>()[2] == INT32_MIN);
  CHECK(fill(TestTensor::of<double>({1}, {1}), out) == Error::InvalidArgument);
  CHECK(fill(TestTensor::of<int32_t>({}, {1}), {ScalarType::Float, {3}}) ==
        Error::InvalidArgument);
}

TEST_CASE("the largest item of nothing is the lowest number") {
  const TestTensor floats(ScalarType::Float, {0, 2});
  const TestTensor out(ScalarType::Float, {});
  CHECK(Call().add(floats).add(out).run(max_unary_out) == Error::Ok);
  CHECK(out.items<float>()[0] == -std::numeric_limits<float>::infinity());
  CHECK(Call().add(floats).add(out).run(min_unary_out) == Error::Ok);
  CHECK(out.items<float>()[0] == std::numeric_limits<float>::infinity());
  const TestTensor bytes(ScalarType::Byte, {0});
  const TestTensor wide(ScalarType::Long, {});
  CHECK(Call().add(bytes).add(wide).run(min_unary_out) == Error::Ok);
  CHECK(wide.items<int64_t>()[0] == 255);
  CHECK(Call().add(floats).add(wide).run(max_unary_out) ==
        Error::InvalidArgument);
}

TEST_CASE("means of integers are exact before they are rounded") {
  const auto mean = [](const TestTensor& x, const TestTensor& out) {
    const auto dtype = static_cast<int64_t>(out.tensor().dtype);
    return Call().add(x).integer(dtype).add(out).run(mean_dtype_out);
  };
  const TestTensor half(ScalarType::Half, {});
  const auto x = TestTensor::of<int16_t>({7}, {32767, -32768, 1, 1, -1, 0, 0});
  CHECK(mean(x, half) == Error::Ok);
  CHECK(half.items<Half>()[0].bits == Half(0.0F).bits);
  const TestTensor wide(ScalarType::Double, {});
  const std::vector<int64_t> large = {INT64_MAX, INT64_MAX, INT64_MAX, 1};
  CHECK(mean(TestTensor::of<int64_t>({4}, large), wide) == Error::Ok);
  CHECK(wide.items<double>()[0] == 0x1.8p62);
  const std::vector<int64_t> opposite = {INT64_MAX, INT64_MIN};
  CHECK(mean(TestTensor::of<int64_t>({2}, opposite), wide) == Error::Ok);
  CHECK(wide.items<double>()[0] == -0.5);
}

}  // namespace
}  // namespace orch::test
