#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using prim_ops::_local_scalar_dense;
using prim_ops::sym_numel;
using prim_ops::sym_size_int;

TEST_CASE("sym_size counts dimensions from either end") {
  const TestTensor x(ScalarType::Char, {2, 0, 5});
  const std::vector<std::pair<int64_t, int64_t>> cases = {
      {0, 2}, {1, 0}, {2, 5}, {-1, 5}, {-2, 0}, {-3, 2}};
  for (const auto& [dim, size] : cases) {
    Call call;
    CHECK(call.add(x).integer(dim).integer(77).run(sym_size_int) == Error::Ok);
    CHECK(call.result().to_int() == size);
  }
  for (const int64_t dim :
       {int64_t{3}, int64_t{-4}, INT64_MIN, INT64_MAX, int64_t{1} << 32}) {
    Call call;
    CHECK(call.add(x).integer(dim).integer(77).run(sym_size_int) ==
          Error::InvalidArgument);
    CHECK(call.result().to_int() == 77);
  }
  CHECK(Call()
            .add({ScalarType::Char, {}})
            .integer(0)
            .integer(77)
            .run(sym_size_int) == Error::InvalidArgument);
}

TEST_CASE("sym_numel") {
  for (const auto& [sizes, count] : std::vector<std::pair<Sizes, int64_t>>{
           {{}, 1}, {{0, 3}, 0}, {{2, 3, 4}, 24}}) {
    const TestTensor x(ScalarType::Char, sizes);
    Call call;
    CHECK(call.add(x).integer(77).run(sym_numel) == Error::Ok);
    CHECK(call.result().to_int() == count);
  }
}

/// The item of a tensor as a value of the kind that `result` adds to the call.
template <typename T>
Value item(std::vector<T> items, Call& (*result)(Call&)) {
  const auto x = TestTensor::of<T>({static_cast<int32_t>(items.size())}, items);
  Call call;
  CHECK(result(call.add(x)).run(_local_scalar_dense) == Error::Ok);
  return call.result();
}

Call& int_result(Call& call) { return call.integer(77); }
Call& double_result(Call& call) { return call.number(77); }
Call& bool_result(Call& call) { return call.boolean(false); }

TEST_CASE("_local_scalar_dense of every dtype") {
  CHECK(item<uint8_t>({255}, int_result).to_int() == 255);
  CHECK(item<int8_t>({-128}, int_result).to_int() == -128);
  CHECK(item<int16_t>({-5}, int_result).to_int() == -5);
  CHECK(item<int32_t>({INT32_MIN}, int_result).to_int() == INT32_MIN);
  CHECK(item<int64_t>({INT64_MIN}, int_result).to_int() == INT64_MIN);
  CHECK(item<int64_t>({4, 5}, int_result).to_int() == 4);
  CHECK(item<float>({0.1F}, double_result).to_double() ==
        static_cast<double>(0.1F));
  CHECK(item<double>({-0.1}, double_result).to_double() == -0.1);
  CHECK(item<Half>({Half(1.5F)}, double_result).to_double() == 1.5);
  CHECK(item<BFloat16>({BFloat16(-2.5F)}, double_result).to_double() == -2.5);
  CHECK(item<bool>({true}, bool_result).to_bool());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(item<double>({nan}, double_result).to_double()));
}

TEST_CASE("_local_scalar_dense refuses what does not fit") {
  const auto run = [](const TestTensor& x, Call& (*result)(Call&)) {
    Call call;
    result(call.add(x));
    const int64_t before = call.result().scalar().bits();
    const Tag kind = call.result().tag();
    const Error error = call.run(_local_scalar_dense);
    CHECK(call.result().scalar().bits() == before);
    CHECK(call.result().tag() == kind);
    return error;
  };
  CHECK(run({ScalarType::Long, {0}}, int_result) == Error::InvalidArgument);
  CHECK(run({ScalarType::Long, {}}, double_result) == Error::InvalidArgument);
  CHECK(run({ScalarType::Long, {}}, bool_result) == Error::InvalidArgument);
  CHECK(run({ScalarType::Float, {}}, int_result) == Error::InvalidArgument);
  CHECK(run({ScalarType::Bool, {}}, int_result) == Error::InvalidArgument);
  CHECK(run({ScalarType::UInt64, {}}, int_result) == Error::DtypeNotSelected);
}

}  // namespace
}  // namespace orch::test
