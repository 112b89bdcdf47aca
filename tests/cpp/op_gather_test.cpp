// Operators that find items by an index along one dimension or by a mask: what
// they refuse, and memory that overlaps.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using List = std::vector<const TestTensor*>;
using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TestTensor longs(Sizes sizes, const Longs& items) {
  return TestTensor::of<int64_t>(std::move(sizes), items);
}

TestTensor floats(Sizes sizes, const Floats& items) {
  return TestTensor::of<float>(std::move(sizes), items);
}

TestTensor mask(Sizes sizes, const Bytes& items) {
  TestTensor made(ScalarType::Bool, std::move(sizes));
  std::memcpy(made.data(), items.data(), items.size());
  return made;
}

bool unwritten(const TestTensor& tensor) {
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    if (tensor.data()[i] != TestTensor::kPattern) return false;
  }
  return true;
}

Error gather(const TestTensor& self, int64_t dim, const TestTensor& index,
             const TestTensor& out) {
  return Call().add(self).integer(dim).add(index).boolean(false).add(out).run(
      gather_out);
}

Error scatter(KernelFn kernel, const TestTensor& self, int64_t dim,
              const TestTensor& index, const TestTensor& src,
              const TestTensor& out) {
  return Call().add(self).integer(dim).add(index).add(src).add(out).run(kernel);
}

const int64_t kHostile[] = {3,         -1,        INT64_MAX,   INT64_MIN,
                            1LL << 32, 1LL << 62, -(1LL << 32)};

TEST_CASE("indices along a dimension are checked before anything is written") {
  const TestTensor x = floats({3}, {1, 2, 3});
  const TestTensor out(ScalarType::Float, {3});
  const TestTensor two(ScalarType::Float, {2});
  for (const int64_t bad : kHostile) {
    const TestTensor index = longs({2}, {0, bad});
    CHECK(gather(x, 0, index, two) == Error::InvalidArgument);
    CHECK(scatter(scatter_src_out, x, 0, index, x, out) ==
          Error::InvalidArgument);
    CHECK(scatter(scatter_add_out, x, 0, index, x, out) ==
          Error::InvalidArgument);
    CHECK(Call().add(x).integer(0).add(index).add(two).run(index_select_out) ==
          Error::InvalidArgument);
  }
  const TestTensor index = longs({2}, {0, 1});
  for (const int64_t dim : {int64_t{1}, int64_t{-2}, INT64_MIN}) {
    CHECK(gather(x, dim, index, two) == Error::InvalidArgument);
  }
  CHECK(gather(x, 0, longs({1, 2}, {0, 1}), {ScalarType::Float, {1, 2}}) ==
        Error::InvalidArgument);
  // The source has fewer items than the index.
  CHECK(scatter(scatter_src_out, x, 0, index, floats({1}, {7}), out) ==
        Error::InvalidArgument);
  CHECK(unwritten(out));
  CHECK(unwritten(two));
}

TEST_CASE("indices that are written over are checked again") {
  const TestTensor values = longs({2}, {1 << 30, 1 << 30});
  const TestTensor target = longs({2}, {1, 0});
  CHECK(scatter(scatter_src_out, target, 0, target, values, target) ==
        Error::InvalidArgument);
  const TestTensor sums = longs({2}, {1, 0});
  CHECK(scatter(scatter_add_out, sums, 0, sums, values, sums) ==
        Error::InvalidArgument);
}

TEST_CASE("scatter takes numbers that are items") {
  const TestTensor x = TestTensor::of<int8_t>({2}, {1, 2});
  const TestTensor index = longs({1}, {1});
  const TestTensor out(ScalarType::Char, {2});
  const auto run = [&](double value) {
    return Call().add(x).integer(0).add(index).number(value).add(out).run(
        scatter_value_out);
  };
  CHECK(run(128) == Error::InvalidArgument);
  CHECK(run(__builtin_nan("")) == Error::InvalidArgument);
  CHECK(unwritten(out));
  CHECK(run(-128) == Error::Ok);
  CHECK(out.items<int8_t>() == std::vector<int8_t>{1, -128});
}

TEST_CASE("sums of halves are rounded once") {
  // 4096 + 1 is no Half: added one by one, the ones would be lost.
  const TestTensor x = TestTensor::of<Half>({1}, {Half(4096)});
  const TestTensor ones =
      TestTensor::of<Half>({4}, {Half(1), Half(1), Half(1), Half(1)});
  const TestTensor out(ScalarType::Half, {1});
  CHECK(scatter(scatter_add_out, x, 0, longs({4}, {0, 0, 0, 0}), ones, out) ==
        Error::Ok);
  CHECK(static_cast<float>(out.items<Half>()[0]) == 4100);
}

TEST_CASE("results of masks have as many items as are true") {
  const TestTensor x = floats({2, 2}, {1, 2, 3, 4});
  const TestTensor row = mask({2}, {0, 1});
  const auto out = TestTensor(ScalarType::Float, {4}).dynamic();
  CHECK(Call().add(x).add(row).add(out).run(masked_select_out) == Error::Ok);
  CHECK(out.sizes() == Sizes{2});
  const TestTensor small(ScalarType::Float, {1});
  CHECK(Call().add(x).add(row).add(small).run(masked_select_out) ==
        Error::InvalidArgument);
  const auto full = TestTensor(ScalarType::Float, {1}).dynamic();
  CHECK(Call().add(x).add(row).add(full).run(masked_select_out) ==
        Error::ShapeTooLarge);
  const auto places = TestTensor(ScalarType::Long, {4, 2}).dynamic();
  CHECK(Call()
            .add(floats({2, 2}, {0, 5, -0.0F, __builtin_nanf("")}))
            .add(places)
            .run(nonzero_out) == Error::Ok);
  CHECK(places.sizes() == Sizes{2, 2});
  // A source with too few items; nothing is written.
  const TestTensor copy(ScalarType::Float, {2, 2});
  CHECK(Call()
            .add(x)
            .add(row)
            .add(floats({1}, {9}))
            .add(copy)
            .run(masked_scatter_out) == Error::InvalidArgument);
  CHECK(unwritten(copy));
}

TEST_CASE("a mask that is written over gives no more items") {
  // Copying the mask itself, which lies where the output is.
  const auto both = TestTensor(ScalarType::Bool, {8}).dynamic();
  for (size_t i = 0; i < 8; ++i) both.data()[i] = i % 2;
  const Error found =
      Call().add(both).add(both).add(both).run(masked_select_out);
  CHECK(found == Error::InvalidArgument);
}

TEST_CASE("masks index as many dimensions as they have") {
  const TestTensor x = floats({2, 2}, {1, 2, 3, 4});
  const TestTensor out(ScalarType::Float, {2});
  const auto index = [&](const List& indices, const TestTensor& to) {
    return Call().add(x).tensors(indices).add(to).run(index_Tensor_out);
  };
  const TestTensor all = mask({2, 2}, {1, 0, 0, 7});
  CHECK(index({&all}, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{1, 4});
  const TestTensor wrong = mask({2, 1}, {1, 1});
  const TestTensor none = mask({}, {1});
  CHECK(index({&wrong}, out) == Error::InvalidArgument);
  CHECK(index({&none}, out) == Error::InvalidArgument);
  CHECK(index({nullptr, &all}, out) == Error::InvalidArgument);
  CHECK(index({&all, &all}, out) == Error::InvalidArgument);
  const TestTensor one = longs({1}, {0});
  CHECK(index({&all, &one}, out) == Error::InvalidArgument);
}

TEST_CASE("index_put_ changes its input") {
  const TestTensor x = floats({2, 2}, {1, 2, 3, 4});
  const TestTensor row = mask({2}, {0, 1});
  const auto put = [&](const List& indices, const TestTensor& values,
                       bool accumulate) {
    return Call()
        .add(x)
        .tensors(indices)
        .add(values)
        .boolean(accumulate)
        .run(index_put_);
  };
  CHECK(put({nullptr, &row}, floats({2, 1}, {8, 9}), false) == Error::Ok);
  CHECK(x.items<float>() == Floats{1, 8, 3, 9});
  const TestTensor twice = longs({2}, {-1, -1});
  CHECK(put({&twice}, floats({1}, {1}), true) == Error::Ok);
  CHECK(x.items<float>() == Floats{1, 8, 5, 11});
  const TestTensor bad = longs({2}, {0, 2});
  CHECK(put({&bad}, floats({1}, {7}), false) == Error::InvalidArgument);
  CHECK(put({&twice}, floats({3}, {7, 7, 7}), false) == Error::InvalidArgument);
  CHECK(x.items<float>() == Floats{1, 8, 5, 11});
}

TEST_CASE("gradients of pooling go to places of the image only") {
  // Side by side, or with a step from one to the next.
  for (const Order& order : {Order{0, 1, 2}, Order{1, 2, 0}}) {
    const TestTensor image(ScalarType::Float, {2, 1, 4}, order);
    const TestTensor gradient =
        TestTensor::of<float>({2, 1, 2}, {1, 2, 4, 8}, order);
    const TestTensor out(ScalarType::Float, {2, 1, 4}, order);
    const auto run = [&](const Longs& indices) {
      return Call()
          .add(gradient)
          .add(image)
          .ints({1, 2})
          .ints({})
          .ints({0})
          .ints({1})
          .boolean(false)
          .add(TestTensor::of<int64_t>({2, 1, 2}, indices, order))
          .add(out)
          .run(max_pool2d_with_indices_backward_grad_input);
    };
    for (const int64_t bad : {int64_t{4}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
      for (size_t at = 0; at < 4; ++at) {
        Longs indices = {0, 3, -1, 3};
        indices[at] = bad;
        CHECK(run(indices) == Error::InvalidArgument);
      }
    }
    CHECK(run({-1, 3, 3, 3}) == Error::Ok);
    CHECK(out.items<float>() == (order[0] == 0
                                     ? Floats{0, 0, 0, 2, 0, 0, 0, 12}
                                     : Floats{0, 0, 0, 0, 0, 0, 4, 10}));
  }
}

TEST_CASE("sampling survives any coordinate and any scale") {
  const TestTensor image = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const float inf = __builtin_inff();
  const TestTensor grid = floats({1, 1, 4, 2}, {inf, -inf, __builtin_nanf(""),
                                                3e38F, -3e38F, 1, 0, 1e30F});
  const TestTensor out(ScalarType::Float, {1, 1, 1, 4});
  for (int64_t mode = -1; mode < 4; ++mode) {
    for (int64_t padding = -1; padding < 4; ++padding) {
      const bool known = mode >= 0 && mode < 3 && padding >= 0 && padding < 3;
      CHECK(Call()
                .add(image)
                .add(grid)
                .integer(mode)
                .integer(padding)
                .boolean(padding == 1)
                .add(out)
                .run(grid_sampler_2d_out) ==
            (known ? Error::Ok : Error::InvalidArgument));
    }
  }
  const TestTensor scaled(ScalarType::Float, {1, 1, 3, 3});
  for (const double factor :
       {0.0, -1.0, 1e-300, 1e300, 5e-324, __builtin_inf(), __builtin_nan("")}) {
    CHECK(Call()
              .add(image)
              .ints({3})
              .boolean(false)
              .number(factor)
              .number(factor)
              .add(scaled)
              .run(_upsample_bilinear2d_aa_out) == Error::Ok);
    CHECK(Call()
              .add(image)
              .none()
              .boolean(false)
              .doubles({factor, factor})
              .add(scaled)
              .run(upsample_bilinear2d_vec_out) == Error::InvalidArgument);
  }
}

}  // namespace
}  // namespace orch::test
