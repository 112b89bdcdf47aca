#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"
#include "support/load.h"

namespace orch::test {
namespace {

using prim_ops::et_copy_index_tensor;

Error copy_index(const TestTensor& to, const TestTensor& from, int64_t index) {
  return Call().add(to).add(from).integer(index).run(et_copy_index_tensor);
}

TEST_CASE("et_copy_index grows a dynamic tensor row by row") {
  const auto to = TestTensor(ScalarType::Int, {3, 2}).dynamic();
  for (int32_t row = 0; row < 3; ++row) {
    const auto from = TestTensor::of<int32_t>({2}, {row, -row});
    CHECK(copy_index(to, from, row) == Error::Ok);
    CHECK(to.sizes() == Sizes{row + 1, 2});
  }
  CHECK(to.items<int32_t>() == std::vector<int32_t>{0, 0, 1, -1, 2, -2});
  const auto from = TestTensor::of<int32_t>({2}, {9, 9});
  CHECK(copy_index(to, from, 3) == Error::ShapeTooLarge);
  CHECK(to.sizes() == Sizes{3, 2});
  // The next loop begins again.
  CHECK(copy_index(to, from, 0) == Error::Ok);
  CHECK(to.sizes() == Sizes{1, 2});
  CHECK(to.items<int32_t>() == std::vector<int32_t>{9, 9, 1, -1, 2, -2});
}

TEST_CASE("et_copy_index takes the sizes of a row from the first one") {
  const auto to = TestTensor(ScalarType::Short, {2, 4}).dynamic();
  const auto from = TestTensor::of<int16_t>({3}, {1, 2, 3});
  CHECK(copy_index(to, from, 0) == Error::Ok);
  CHECK(to.sizes() == Sizes{1, 3});
  CHECK(copy_index(to, from, 1) == Error::Ok);
  CHECK(to.sizes() == Sizes{2, 3});
  CHECK(to.items<int16_t>()[5] == 3);
  const TestTensor other(ScalarType::Short, {4});
  CHECK(copy_index(to, other, 1) == Error::InvalidArgument);
  CHECK(to.sizes() == Sizes{2, 3});
}

TEST_CASE("et_copy_index writes any row of a static tensor") {
  const auto to = TestTensor::of<int8_t>({3}, {1, 2, 3});
  const auto from = TestTensor::of<int8_t>({}, {9});
  CHECK(copy_index(to, from, 2) == Error::Ok);
  CHECK(copy_index(to, from, 0) == Error::Ok);
  CHECK(to.items<int8_t>() == std::vector<int8_t>{9, 2, 9});
  CHECK(copy_index(to, from, 3) == Error::InvalidArgument);
}

TEST_CASE("et_copy_index of rows without items") {
  const auto to = TestTensor(ScalarType::Float, {2, 2}).dynamic();
  const TestTensor from(ScalarType::Float, {0});
  CHECK(copy_index(to, from, 0) == Error::Ok);
  CHECK(copy_index(to, from, 1 << 20) == Error::Ok);
  CHECK(to.sizes() == Sizes{(1 << 20) + 1, 0});
}

TEST_CASE("et_copy_index refuses what does not fit") {
  const auto to = TestTensor(ScalarType::Float, {2, 3}).dynamic();
  const std::vector<uint32_t> before = to.items<uint32_t>();
  const TestTensor row(ScalarType::Float, {3});
  for (const int64_t index :
       {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{INT32_MAX}, int64_t{1} << 32,
        (int64_t{1} << 32) - 1}) {
    CAPTURE(index);
    CHECK(copy_index(to, row, index) == Error::InvalidArgument);
  }
  CHECK(copy_index(to, row, INT32_MAX - 1) == Error::ShapeTooLarge);
  CHECK(copy_index(to, {ScalarType::Int, {3}}, 0) == Error::InvalidArgument);
  CHECK(copy_index(to, {ScalarType::Float, {2, 3}}, 0) ==
        Error::InvalidArgument);
  CHECK(copy_index(to, {ScalarType::Float, {}}, 0) == Error::InvalidArgument);
  CHECK(copy_index(row, to, 0) == Error::InvalidArgument);
  CHECK(copy_index(to, to, 0) == Error::InvalidArgument);
  CHECK(copy_index({ScalarType::Float, {2, 3}, {1, 0}}, row, 0) ==
        Error::InvalidArgument);
  CHECK(copy_index({ScalarType::Float, {2, 3, 2}},
                   {ScalarType::Float, {3, 2}, {1, 0}},
                   0) == Error::InvalidArgument);
  CHECK(to.items<uint32_t>() == before);
  CHECK(to.sizes() == Sizes{2, 3});
}

constexpr Kernel kTable[] = {
    {"aten::_local_scalar_dense", "T>S", nullptr, prim_ops::_local_scalar_dense,
     kAll},
    {"aten::sym_size.int", "TI>I", nullptr, prim_ops::sym_size_int, kAll},
    {"executorch_prim::add.Scalar", "SS>S", nullptr, prim_ops::add_Scalar,
     kAll},
    {"executorch_prim::eq.Scalar", "SS>B", nullptr, prim_ops::eq_Scalar, kAll},
    {"executorch_prim::et_copy_index.tensor", "tTI", nullptr,
     et_copy_index_tensor, kAll},
};

/// A loop as the exporter writes one: `row` to row `i` of `to`, for each row of
/// `over`. The condition is declared as an int, as results are.
ProgramFacts loop(const TensorFacts& to, const TensorFacts& row, int64_t step) {
  return program_of([&](MethodFacts& m) {
    m.arenas = {0, 256};
    m.tensor(to);                                            // 0
    m.tensor(row);                                           // 1
    m.tensor({{3, 9}, {}, ScalarType::Char, 0, 0, 1, 128});  // 2
    const int32_t i = m.integer(0);                          // 3
    const int32_t count = m.integer(0);                      // 4
    const int32_t done = m.integer(0);                       // 5
    m.call("aten::sym_size.int", {2, m.integer(0), count});  // 0
    m.call("executorch_prim::et_copy_index.tensor", {0, 1, i});
    m.call("executorch_prim::add.Scalar", {i, m.integer(step), i});
    m.call("executorch_prim::eq.Scalar", {i, count, done});
    m.jump_unless(done, 1);
  });
}

const TensorFacts kRows{{3, 2}, {}, ScalarType::Short, 1, 0, 1, 0};
const TensorFacts kRow{{2}, {}, ScalarType::Short, 0, 0, 1, 64};

TEST_CASE("a loop fills a tensor row by row") {
  const Loaded loaded(loop(kRows, kRow, 1), kTable);
  REQUIRE(loaded.error == Error::Ok);
  Tensor& to = loaded.value(0).tensor();
  loaded.value(1).tensor().mutable_data<int16_t>()[1] = 5;
  const RunStatus status = execute(loaded.image, 1000);
  CHECK(status.error == Error::Ok);
  CHECK(loaded.value(3).to_int() == 3);
  CHECK(loaded.value(5).tag() == Tag::Bool);
  CHECK(to.size(0) == 3);
  CHECK(to.data<int16_t>()[5] == 5);
}

TEST_CASE("a loop that would leave its tensor ends with an error") {
  // The condition never holds.
  const Loaded over(loop(kRows, kRow, 2), kTable);
  REQUIRE(over.error == Error::Ok);
  CHECK(execute(over.image, 1000).error == Error::ShapeTooLarge);
  const Loaded under(loop(kRows, kRow, -1), kTable);
  REQUIRE(under.error == Error::Ok);
  CHECK(execute(under.image, 1000).error == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
