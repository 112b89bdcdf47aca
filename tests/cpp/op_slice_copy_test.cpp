// Operators that copy part of a tensor, or all of it with other sizes:
// slice_copy, select_copy, split_with_sizes_copy, squeeze_copy, unsqueeze_copy,
// view_copy, expand_copy and flip.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Ints = std::vector<int64_t>;
using Shorts = std::vector<int16_t>;

constexpr ScalarType kShort = ScalarType::Short;

TestTensor shorts(Sizes sizes, Order order = {}) {
  TestTensor made(kShort, std::move(sizes), std::move(order));
  for (size_t i = 0; i < made.bytes() / 2; ++i) {
    const int16_t item = static_cast<int16_t>(i);
    std::memcpy(made.data() + 2 * i, &item, 2);
  }
  return made;
}

/// Whether no byte of a tensor was written.
bool unwritten(const TestTensor& tensor) {
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    if (tensor.data()[i] != TestTensor::kPattern) return false;
  }
  return true;
}

Error slice(const TestTensor& self, int64_t dim, int64_t start, int64_t end,
            int64_t step, const TestTensor& out) {
  return Call()
      .add(self)
      .integer(dim)
      .integer(start)
      .integer(end)
      .integer(step)
      .add(out)
      .run(slice_copy_Tensor_out);
}

TEST_CASE("slice_copy reads bounds as Python does") {
  const TestTensor x = shorts({5, 2});
  const TestTensor out(kShort, {2, 2});
  CHECK(slice(x, 0, 1, 5, 3, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{2, 3, 8, 9});
  CHECK(slice(x, -2, -2, INT64_MAX, 1, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{6, 7, 8, 9});
  CHECK(slice(x, 0, INT64_MIN, -3, 1, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{0, 1, 2, 3});
  const TestTensor one(kShort, {5, 1});
  CHECK(slice(x, 1, 1, 2, INT64_MAX, one) == Error::Ok);
  CHECK(one.items<int16_t>() == Shorts{1, 3, 5, 7, 9});
  CHECK(Call().add(x).integer(1).none().none().integer(2).add(one).run(
            slice_copy_Tensor_out) == Error::Ok);
  CHECK(one.items<int16_t>() == Shorts{0, 2, 4, 6, 8});
}

TEST_CASE("slice_copy gives a dynamic output its sizes, also none") {
  const TestTensor x = shorts({4, 2});
  const auto out = TestTensor(kShort, {4, 2}).dynamic();
  CHECK(slice(x, 0, 0, 3, 1, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{3, 2});
  CHECK(slice(x, 0, 3, 1, 1, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{0, 2});
  CHECK(slice(x, 0, 4, 9, 1, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{0, 2});
  CHECK(slice({kShort, {0, 2}}, 0, 0, 9, INT64_MAX, out) == Error::Ok);
  CHECK(slice(x, 0, 0, 4, 1, TestTensor(kShort, {3, 2}).dynamic()) ==
        Error::ShapeTooLarge);
}

TEST_CASE("slice_copy refuses what does not fit") {
  const TestTensor x = shorts({4, 2});
  const TestTensor out(kShort, {4, 2});
  for (const int64_t step : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    CHECK(slice(x, 0, 0, 4, step, out) == Error::InvalidArgument);
  }
  for (const int64_t dim : {int64_t{2}, int64_t{-3}, int64_t{1} << 32}) {
    CHECK(slice(x, dim, 0, 4, 1, out) == Error::InvalidArgument);
  }
  CHECK(slice(x, 0, 0, 3, 1, out) == Error::InvalidArgument);
  CHECK(slice(x, 0, 0, 4, 1, {ScalarType::Int, {4, 2}}) ==
        Error::InvalidArgument);
  CHECK(slice({kShort, {}}, 0, 0, 1, 1, {kShort, {}}) ==
        Error::InvalidArgument);
  CHECK(unwritten(out));
  const auto self = TestTensor(kShort, {4, 2}).dynamic();
  CHECK(slice(self, 0, 0, 1, 1, self) == Error::InvalidArgument);
  CHECK(self.sizes() == Sizes{4, 2});
}

TEST_CASE("select_copy leaves a dimension out") {
  const TestTensor x = shorts({2, 3, 2});
  const TestTensor out(kShort, {2, 2});
  const auto select = [&](int64_t dim, int64_t index, const TestTensor& to) {
    return Call().add(x).integer(dim).integer(index).add(to).run(
        select_copy_int_out);
  };
  CHECK(select(1, 2, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{4, 5, 10, 11});
  CHECK(select(-2, -3, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{0, 1, 6, 7});
  const TestTensor turned(kShort, {2, 2}, {1, 0});
  CHECK(select(1, 0, turned) == Error::Ok);
  CHECK(turned.items<int16_t>() == Shorts{0, 6, 1, 7});
  for (const int64_t index :
       {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN, int64_t{1} << 32}) {
    const TestTensor fresh(kShort, {2, 2});
    CHECK(select(1, index, fresh) == Error::InvalidArgument);
    CHECK(unwritten(fresh));
  }
  CHECK(select(3, 0, out) == Error::InvalidArgument);
  CHECK(select(0, 0, out) == Error::InvalidArgument);
  const TestTensor scalar(kShort, {});
  CHECK(Call().add(scalar).integer(0).integer(0).add(scalar).run(
            select_copy_int_out) == Error::InvalidArgument);
}

Error split(const TestTensor& self, const Ints& sizes, int64_t dim,
            const std::vector<const TestTensor*>& outs) {
  return Call().add(self).ints(sizes).integer(dim).tensors(outs).run(
      split_with_sizes_copy_out);
}

TEST_CASE("split_with_sizes_copy") {
  const TestTensor x = shorts({2, 4});
  const TestTensor a(kShort, {2, 1});
  const TestTensor b(kShort, {2, 0});
  const auto c = TestTensor(kShort, {2, 4}).dynamic();
  CHECK(split(x, {1, 0, 3}, -1, {&a, &b, &c}) == Error::Ok);
  CHECK(a.items<int16_t>() == Shorts{0, 4});
  CHECK(c.sizes() == Sizes{2, 3});
  const Shorts items = c.items<int16_t>();
  CHECK(Shorts(items.begin(), items.begin() + 6) == Shorts{1, 2, 3, 5, 6, 7});
  CHECK(split({kShort, {0}}, {}, 0, {}) == Error::Ok);
}

TEST_CASE(
    "split_with_sizes_copy refuses what does not fit, and writes nothing") {
  const TestTensor x = shorts({2, 4});
  const TestTensor a(kShort, {2, 2});
  const TestTensor b(kShort, {2, 2});
  const std::vector<const TestTensor*> both = {&a, &b};
  for (const Ints& sizes :
       {Ints{2, 1}, Ints{2, 3}, Ints{4, 0}, Ints{2}, Ints{2, 2, 0}, Ints{-2, 6},
        Ints{INT64_MAX, INT64_MIN}, Ints{(1LL << 32) + 2, 2}, Ints{}}) {
    CHECK(split(x, sizes, 1, both) == Error::InvalidArgument);
  }
  CHECK(split(x, {2, 2}, 0, both) == Error::InvalidArgument);
  CHECK(split(x, {2, 2}, 2, both) == Error::InvalidArgument);
  CHECK(split(x, {2, 2}, 1, {&a, nullptr}) == Error::InvalidArgument);
  const TestTensor other(ScalarType::Half, {2, 2});
  CHECK(split(x, {2, 2}, 1, {&a, &other}) == Error::InvalidArgument);
  const TestTensor scalar(kShort, {});
  CHECK(split(scalar, {1}, 0, {&scalar}) == Error::InvalidArgument);
  CHECK(unwritten(a));
  CHECK(unwritten(b));
  // One value twice: it cannot have both sizes.
  const auto twice = TestTensor(kShort, {2, 4}).dynamic();
  CHECK(split(x, {3, 1}, 1, {&twice, &twice}) == Error::InvalidArgument);
  CHECK(unwritten(twice));
  const auto self = TestTensor(kShort, {2, 4}).dynamic();
  CHECK(split(self, {1, 3}, 1, {&self, &b}) == Error::InvalidArgument);
  CHECK(self.sizes() == Sizes{2, 4});
}

TEST_CASE("squeeze_copy leaves dimensions of size 1 out, if they are named") {
  const TestTensor x = shorts({1, 3, 1});
  const auto squeeze = [&](const Ints& dims, const TestTensor& out) {
    return Call().add(x).ints(dims).add(out).run(squeeze_copy_dims_out);
  };
  const TestTensor flat(kShort, {3});
  CHECK(squeeze({0, -1}, flat) == Error::Ok);
  CHECK(flat.items<int16_t>() == Shorts{0, 1, 2});
  CHECK(squeeze({0, 1, 2}, flat) == Error::Ok);
  CHECK(squeeze({-1}, {kShort, {1, 3}}) == Error::Ok);
  CHECK(squeeze({1}, {kShort, {1, 3, 1}}) == Error::Ok);
  CHECK(squeeze({}, {kShort, {1, 3, 1}}) == Error::Ok);
  const TestTensor fresh(kShort, {3});
  CHECK(squeeze({0}, fresh) == Error::InvalidArgument);
  CHECK(squeeze({0, 2, 0}, fresh) == Error::InvalidArgument);
  CHECK(squeeze({0, -3}, fresh) == Error::InvalidArgument);
  CHECK(squeeze({0, 3}, fresh) == Error::InvalidArgument);
  CHECK(squeeze(Ints(40, 0), fresh) == Error::InvalidArgument);
  CHECK(squeeze({0, 2}, {ScalarType::Half, {3}}) == Error::InvalidArgument);
  CHECK(unwritten(fresh));
}

TEST_CASE("unsqueeze_copy puts a dimension of size 1 in") {
  const auto unsqueeze = [](const TestTensor& x, int64_t dim,
                            const TestTensor& out) {
    return Call().add(x).integer(dim).add(out).run(unsqueeze_copy_out);
  };
  const TestTensor x = shorts({2, 3}, {1, 0});
  const TestTensor out(kShort, {2, 1, 3});
  CHECK(unsqueeze(x, 1, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{0, 2, 4, 1, 3, 5});
  CHECK(unsqueeze(x, -2, out) == Error::Ok);
  CHECK(unsqueeze(x, 2, {kShort, {2, 3, 1}}) == Error::Ok);
  CHECK(unsqueeze(x, -3, {kShort, {1, 2, 3}}) == Error::Ok);
  CHECK(unsqueeze({kShort, {}}, -1, {kShort, {1}}) == Error::Ok);
  CHECK(unsqueeze(x, 3, out) == Error::InvalidArgument);
  CHECK(unsqueeze(x, -4, out) == Error::InvalidArgument);
  CHECK(unsqueeze(x, 0, out) == Error::InvalidArgument);
  CHECK(unsqueeze(x, 1, {ScalarType::Int, {2, 1, 3}}) ==
        Error::InvalidArgument);
  const TestTensor eight(kShort, {1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(unsqueeze(eight, 0, eight) == Error::InvalidArgument);
}

TEST_CASE("view_copy goes by the order of indices, whatever the dim order") {
  const auto view = [](const TestTensor& x, const Ints& size,
                       const TestTensor& out) {
    return Call().add(x).ints(size).add(out).run(view_copy_out);
  };
  const TestTensor x = shorts({2, 3});
  const auto out = TestTensor(kShort, {2, 3}).dynamic();
  CHECK(view(x, {3, -1}, out) == Error::Ok);
  CHECK(out.sizes() == Sizes{3, 2});
  CHECK(out.items<int16_t>() == Shorts{0, 1, 2, 3, 4, 5});
  const TestTensor turned = shorts({2, 3}, {1, 0});
  const TestTensor flat(kShort, {6});
  CHECK(view(turned, {6}, flat) == Error::Ok);
  CHECK(flat.items<int16_t>() == Shorts{0, 2, 4, 1, 3, 5});
  const TestTensor to(kShort, {3, 2}, {1, 0});
  CHECK(view(x, {3, 2}, to) == Error::Ok);
  CHECK(to.items<int16_t>() == Shorts{0, 2, 4, 1, 3, 5});
  CHECK(view({kShort, {0, 2}, {1, 0}}, {4, 0}, {kShort, {4, 0}}) == Error::Ok);
  const TestTensor fresh(kShort, {6});
  for (const Ints& size : {Ints{5}, Ints{7}, Ints{-2}, Ints{}, Ints{6, 1}}) {
    CHECK(view(x, size, fresh) == Error::InvalidArgument);
  }
  CHECK(view(x, {-1, -1}, to) == Error::InvalidArgument);
  CHECK(view(x, {-1, 0}, to) == Error::InvalidArgument);
  CHECK(view(x, {4, -1}, to) == Error::InvalidArgument);
  CHECK(view(x, {1LL << 33, 1}, to) == Error::ShapeTooLarge);
  CHECK(view(x, {1LL << 20, 1LL << 20}, to) == Error::ShapeTooLarge);
  CHECK(view(x, {6}, {ScalarType::Half, {6}}) == Error::InvalidArgument);
  CHECK(unwritten(fresh));
}

TEST_CASE("expand_copy repeats") {
  const auto expand = [](const TestTensor& x, const Ints& size,
                         const TestTensor& out) {
    return Call().add(x).ints(size).boolean(false).add(out).run(
        expand_copy_out);
  };
  const TestTensor x = shorts({2, 1});
  const TestTensor out(kShort, {2, 2, 2});
  CHECK(expand(x, {2, -1, 2}, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{0, 0, 1, 1, 0, 0, 1, 1});
  const auto dynamic = TestTensor(kShort, {2, 8}).dynamic();
  CHECK(expand(x, {2, 3}, dynamic) == Error::Ok);
  CHECK(dynamic.sizes() == Sizes{2, 3});
  CHECK(expand(x, {2, 0}, dynamic) == Error::Ok);
  CHECK(expand(x, {2, 1LL << 31}, dynamic) == Error::ShapeTooLarge);
  CHECK(expand(x, {2, INT32_MAX}, dynamic) == Error::ShapeTooLarge);
  const TestTensor fresh(kShort, {2, 2, 2});
  for (const Ints& size : {Ints{-1, 2, 2}, Ints{2, 3, 2}, Ints{2, 0, 2},
                           Ints{2, 2, -2}, Ints{2}, Ints(9, 1)}) {
    CHECK(expand(x, size, fresh) == Error::InvalidArgument);
  }
  CHECK(expand(x, {2, 2, 2}, {ScalarType::Half, {2, 2, 2}}) ==
        Error::InvalidArgument);
  CHECK(unwritten(fresh));
}

TEST_CASE("flip") {
  const auto flip = [](const TestTensor& x, const Ints& dims,
                       const TestTensor& out) {
    return Call().add(x).ints(dims).add(out).run(flip_out);
  };
  const TestTensor x = shorts({2, 3});
  const TestTensor out(kShort, {2, 3});
  CHECK(flip(x, {1}, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{2, 1, 0, 5, 4, 3});
  CHECK(flip(x, {-1, 0}, out) == Error::Ok);
  CHECK(out.items<int16_t>() == Shorts{5, 4, 3, 2, 1, 0});
  CHECK(flip({kShort, {0, 3}}, {0}, {kShort, {0, 3}}) == Error::Ok);
  CHECK(flip({kShort, {}}, {0}, {kShort, {}}) == Error::Ok);
  const TestTensor fresh(kShort, {2, 3});
  CHECK(flip(x, {0, 0}, fresh) == Error::InvalidArgument);
  CHECK(flip(x, {2}, fresh) == Error::InvalidArgument);
  CHECK(flip(x, {0}, {kShort, {3, 2}}) == Error::InvalidArgument);
  CHECK(flip(x, {0}, {ScalarType::Half, {2, 3}}) == Error::InvalidArgument);
  CHECK(unwritten(fresh));
}

}  // namespace
}  // namespace orch::test
