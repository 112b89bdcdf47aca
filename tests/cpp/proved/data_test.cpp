// Kernels of a product whose calls the build has proved: what tensors hold is
// checked all the same.
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;

static_assert(kProvedCalls && !kDynamicSizes);

int evaluated = 0;

bool is_evaluated() {
  ++evaluated;
  return false;
}

Error arguments() {
  ORCH_CHECK(is_evaluated(), Error::InvalidArgument);
  ORCH_TRY(Error::InvalidArgument);
  return Error::Ok;
}

Error data() {
  ORCH_CHECK_DATA(is_evaluated(), Error::InvalidArgument);
  return Error::Ok;
}

Error tried_data() {
  ORCH_TRY_DATA(data());
  return Error::Ok;
}

TestTensor longs(Sizes sizes, const std::vector<int64_t>& items) {
  return TestTensor::of<int64_t>(std::move(sizes), items);
}

TEST_CASE("checks of arguments are not evaluated, those of data are") {
  CHECK(arguments() == Error::Ok);
  CHECK(evaluated == 0);
  CHECK(tried_data() == Error::InvalidArgument);
  CHECK(evaluated == 1);
}

TEST_CASE("indices are checked") {
  const TestTensor table = TestTensor::of<float>({3, 1}, {1, 2, 3});
  const TestTensor row = TestTensor::of<float>({3}, {1, 2, 3});
  const TestTensor out(ScalarType::Float, {2, 1});
  const TestTensor items(ScalarType::Float, {2});
  const TestTensor copy(ScalarType::Float, {3});
  for (const int64_t last : {int64_t{2}, int64_t{3}, int64_t{-4},
                             std::numeric_limits<int64_t>::max()}) {
    const TestTensor index = longs({2}, {0, last});
    const Error expected = last == 2 ? Error::Ok : Error::InvalidArgument;
    CHECK(Call()
              .add(table)
              .add(index)
              .integer(-1)
              .boolean(false)
              .boolean(false)
              .add(out)
              .run(embedding_out) == expected);
    CHECK(Call().add(row).integer(0).add(index).add(items).run(
              index_select_out) == expected);
    CHECK(Call().add(row).integer(0).add(index).boolean(false).add(items).run(
              gather_out) == expected);
    CHECK(Call().add(row).tensors({&index}).add(items).run(index_Tensor_out) ==
          expected);
    CHECK(Call()
              .add(row)
              .tensors({&index})
              .add(items)
              .boolean(false)
              .add(copy)
              .run(index_put_out) == expected);
    CHECK(Call().add(row).integer(0).add(index).add(items).add(copy).run(
              scatter_add_out) == expected);
  }
}

TEST_CASE("counts of masks are checked") {
  const TestTensor self = TestTensor::of<float>({3}, {1, 2, 3});
  const TestTensor bools(ScalarType::Bool, {3});
  for (size_t i = 0; i < 3; ++i) bools.data()[i] = i != 1 ? 1 : 0;
  const TestTensor one = TestTensor::of<float>({1}, {5});
  const TestTensor two = TestTensor::of<float>({2}, {5, 6});
  const TestTensor out(ScalarType::Float, {3});
  const auto run = [&](const TestTensor& source) {
    return Call().add(self).add(bools).add(source).add(out).run(
        masked_scatter_out);
  };
  CHECK(run(two) == Error::Ok);
  CHECK(run(one) == Error::InvalidArgument);
  // A static output has as many items as the mask must choose.
  const auto select = [&](int32_t count) {
    const TestTensor chosen(ScalarType::Float, {count});
    return Call().add(self).add(bools).add(chosen).run(masked_select_out);
  };
  CHECK(select(2) == Error::Ok);
  CHECK(select(1) == Error::InvalidArgument);
}

TEST_CASE("divisors are checked") {
  const TestTensor self = TestTensor::of<int32_t>({2}, {6, 7});
  const TestTensor out(ScalarType::Int, {2});
  for (const int32_t divisor : {2, 0}) {
    const TestTensor other = TestTensor::of<int32_t>({2}, {1, divisor});
    CHECK(
        Call().add(self).add(other).text("floor").add(out).run(div_out_mode) ==
        (divisor == 0 ? Error::InvalidArgument : Error::Ok));
  }
}

TEST_CASE("no answer depends on checks that are left out") {
  // Pads ask how a tensor lies, comparisons whether an int holds a double.
  const TestTensor x = TestTensor::of<int8_t>({1, 2, 1, 2}, {1, 2, 3, 4});
  const TestTensor y(ScalarType::Char, {1, 2, 1, 3});
  CHECK(Call()
            .add(x)
            .ints({0, 0, 0, 0})
            .ints({0, 0, 0, 1})
            .integer(9)
            .add(y)
            .run(cortex_m::pad_out) == Error::Ok);
  CHECK(y.items<int8_t>() == std::vector<int8_t>{1, 2, 9, 3, 4, 9});
  Call less;
  less.integer(5).number(1e30).boolean(false);
  CHECK(less.run(prim_ops::lt_Scalar) == Error::Ok);
  CHECK(less.result().to_bool());
}

}  // namespace
}  // namespace orch::test
