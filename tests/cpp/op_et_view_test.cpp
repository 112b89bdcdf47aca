#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"
#include "support/load.h"

namespace orch::test {
namespace {

using prim_ops::et_view_default;

Error view(const TestTensor& self, const std::vector<int64_t>& size,
           const TestTensor& out) {
  return Call().add(self).ints(size).add(out).run(et_view_default);
}

TEST_CASE("et_view copies to memory of its own") {
  const auto x = TestTensor::of<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const std::vector<int64_t>& size :
       {std::vector<int64_t>{3, 2}, {-1, 2}, {3, -1}}) {
    const TestTensor out(ScalarType::Short, {3, 2});
    CHECK(view(x, size, out) == Error::Ok);
    CHECK(out.items<int16_t>() == x.items<int16_t>());
  }
}

TEST_CASE("et_view gives a dynamic result its sizes") {
  const auto x = TestTensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto out = TestTensor(ScalarType::Float, {2, 4, 1}).dynamic();
  CHECK(view(x, {2, -1, 2}, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2, 1, 2});
  CHECK(view(x, {1, 1, 5}, out) == Error::InvalidArgument);
  CHECK(out.sizes() == Sizes{2, 1, 2});
  const TestTensor large(ScalarType::Float, {3, 3});
  CHECK(view(large, {9, 1, 1}, out) == Error::ShapeTooLarge);
  CHECK(out.sizes() == Sizes{2, 1, 2});
}

TEST_CASE("et_view without dimensions and without items") {
  const auto one = TestTensor::of<float>({1}, {7});
  const TestTensor out(ScalarType::Float, {});
  CHECK(view(one, {}, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 7);
  const TestTensor none(ScalarType::Float, {0, 3});
  const auto dynamic = TestTensor(ScalarType::Float, {4, 2}).dynamic();
  CHECK(view(none, {-1, 2}, dynamic) == Error::Ok);
  CHECK(dynamic.sizes() == Sizes{0, 2});
  CHECK(view(none, {5, 0}, dynamic) == Error::Ok);
  CHECK(dynamic.sizes() == Sizes{5, 0});
  // Any size would do.
  CHECK(view(none, {-1, 0}, dynamic) == Error::InvalidArgument);
}

TEST_CASE("et_view refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const TestTensor out(ScalarType::Float, {6});
  const std::vector<uint32_t> before = out.items<uint32_t>();
  CHECK(view(x, {5}, out) == Error::InvalidArgument);
  CHECK(view(x, {7}, out) == Error::InvalidArgument);
  CHECK(view(x, {-6}, out) == Error::InvalidArgument);
  CHECK(view(x, {INT64_MIN}, out) == Error::InvalidArgument);
  CHECK(view(x, {INT64_MAX}, out) == Error::ShapeTooLarge);
  CHECK(view(x, {}, out) == Error::InvalidArgument);
  CHECK(view(x, {6, 1}, out) == Error::InvalidArgument);
  CHECK(view(x, {3, 2}, {ScalarType::Float, {2, 3}}) == Error::InvalidArgument);
  CHECK(view(x, {6}, {ScalarType::Int, {6}}) == Error::InvalidArgument);
  CHECK(view(x, {-1, -1}, {ScalarType::Float, {2, 3}}) ==
        Error::InvalidArgument);
  // Not divisible.
  CHECK(view(x, {-1, 4}, {ScalarType::Float, {1, 4}}) ==
        Error::InvalidArgument);
  // 2^16 * 2^16 * 2^32 + 6, were it to wrap around.
  CHECK(view(x, {65536, 65536, 4}, {ScalarType::Float, {1, 2, 3}}) ==
        Error::ShapeTooLarge);
  // Other than contiguous: a view would not be one.
  CHECK(view({ScalarType::Float, {2, 3}, {1, 0}}, {6}, out) ==
        Error::InvalidArgument);
  CHECK(view(x, {3, 2}, {ScalarType::Float, {3, 2}, {1, 0}}) ==
        Error::InvalidArgument);
  CHECK(out.items<uint32_t>() == before);
}

constexpr Kernel kTable[] = {{"executorch_prim::et_view.default", "TJ>t",
                              nullptr, et_view_default, kAll}};

TEST_CASE("a view that lies where its base does only gets sizes") {
  const Loaded loaded(
      with_arena([](MethodFacts& m) {
        const int32_t base =
            m.tensor({{2, 2}, {}, ScalarType::Float, 1, 0, 1, 0});
        const int32_t out =
            m.tensor({{4}, {}, ScalarType::Float, 1, 0, 1, 0});  // place of it
        const int32_t size = m.ints({m.integer(-1)});
        m.call("executorch_prim::et_view.default", {base, size, out});
      }),
      kTable);
  REQUIRE(loaded.error == Error::Ok);
  Tensor& base = loaded.value(0).tensor();
  const Tensor& out = loaded.value(1).tensor();
  base.mutable_data<float>()[0] = 3;
  const int32_t sizes[] = {1, 2};
  REQUIRE(resize(base, {sizes, 2}) == Error::Ok);
  REQUIRE(execute(loaded.image).error == Error::Ok);
  CHECK(out.memory == base.memory);
  CHECK(out.size(0) == 2);
  CHECK(out.data<float>()[0] == 3);
}

TEST_CASE("a view of a constant is a copy, and never lies in a constant") {
  ProgramFacts facts = with_arena([](MethodFacts& m) {
    m.tensor({{2, 2}, {}, ScalarType::Char, 0, 1});     // 0: constant
    m.tensor({{4}, {}, ScalarType::Char, 0, 0, 1, 8});  // 1: planned
    m.tensor({{4}, {}, ScalarType::Char, 0, 1});        // 2: the constant again
    m.ints({m.integer(4)});                             // 4
  });
  facts.data = {1, 2, 3, 4};
  facts.constants = {0, 0};
  ProgramFacts good = facts;
  good.methods[0].call("executorch_prim::et_view.default", {0, 4, 1});
  const Loaded loaded(good, kTable);
  REQUIRE(loaded.error == Error::Ok);
  REQUIRE(execute(loaded.image).error == Error::Ok);
  const Tensor& out = loaded.value(1).tensor();
  CHECK(out.memory != loaded.value(0).tensor().memory);
  CHECK(out.data<int8_t>()[3] == 4);
  ProgramFacts bad = facts;
  bad.methods[0].call("executorch_prim::et_view.default", {0, 4, 2});
  CHECK(error_of(bad, kTable) == Error::InvalidProgram);
  // Nor in what a move may make one.
  ProgramFacts moved = good;
  moved.methods[0].move(2, 1);
  CHECK(error_of(moved, kTable) == Error::InvalidProgram);
}

}  // namespace
}  // namespace orch::test
