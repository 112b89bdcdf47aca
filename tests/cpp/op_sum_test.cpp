// Reductions: sum, mean, var, argmax, max, any.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

Error reduce(KernelFn kernel, const TestTensor& self, const Ints& dims,
             bool keep, const TestTensor& out, int dtype = -1) {
  Call call;
  call.add(self).ints(dims).boolean(keep);
  dtype < 0 ? call.none() : call.integer(dtype);
  return call.add(out).run(kernel);
}

Error sum(const TestTensor& self, const Ints& dims, bool keep,
          const TestTensor& out, int dtype = -1) {
  return reduce(sum_IntList_out, self, dims, keep, out, dtype);
}

Error mean(const TestTensor& self, const Ints& dims, bool keep,
           const TestTensor& out, int dtype = -1) {
  return reduce(mean_out, self, dims, keep, out, dtype);
}

TEST_CASE("sum along dimensions") {
  const auto x = TestTensor::of<float>({2, 3}, {1, 2, 3, 10, 20, 30});
  const TestTensor rows(ScalarType::Float, {2});
  CHECK(sum(x, {-1}, false, rows) == Error::Ok);
  CHECK(rows.items<float>() == Floats{6, 60});
  const auto kept = TestTensor(ScalarType::Float, {2, 3}).dynamic();
  CHECK(sum(x, {0}, true, kept) == Error::Ok);
  CHECK(kept.sizes() == Sizes{1, 3});
  const TestTensor all(ScalarType::Float, {});
  for (const Ints& dims : {Ints{}, Ints{1, 0}}) {
    CHECK(sum(x, dims, false, all) == Error::Ok);
    CHECK(all.items<float>() == Floats{66});
  }
  CHECK(Call().add(x).none().boolean(false).none().add(all).run(
            sum_IntList_out) == Error::Ok);
  const auto turned =
      TestTensor::of<float>({2, 3}, {1, 10, 2, 20, 3, 30}, {1, 0});
  CHECK(sum(turned, {1}, false, rows) == Error::Ok);
  CHECK(rows.items<float>() == Floats{6, 60});
}

TEST_CASE("sum of nothing is zero, its mean is NaN") {
  const TestTensor out(ScalarType::Float, {2});
  CHECK(sum({ScalarType::Float, {2, 0}}, {1}, false, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{0, 0});
  CHECK(mean({ScalarType::Float, {2, 0}}, {1}, false, out) == Error::Ok);
  CHECK(std::isnan(out.items<float>()[1]));
  CHECK(sum({ScalarType::Float, {0, 2}}, {1}, false,
            {ScalarType::Float, {0}}) == Error::Ok);
}

TEST_CASE(
    "sum is computed as wide as the output, in four parts that take turns") {
  const auto ints = TestTensor::of<int32_t>({2}, {INT32_MAX, INT32_MAX});
  const TestTensor wide(ScalarType::Long, {});
  CHECK(sum(ints, {}, false, wide) == Error::Ok);
  CHECK(wide.items<int64_t>()[0] == 2LL * INT32_MAX);
  const auto chars = TestTensor::of<int8_t>({2}, {-128, -128});
  const TestTensor narrow(ScalarType::Char, {});
  CHECK(sum(chars, {}, false, narrow) == Error::Ok);
  CHECK(narrow.items<int8_t>()[0] == 0);
  CHECK(sum(chars, {}, false, wide) == Error::Ok);
  CHECK(wide.items<int64_t>()[0] == -256);
  // Items are converted first: their fractions are lost.
  const auto floats = TestTensor::of<float>({2}, {1.75F, -2.75F});
  CHECK(sum(floats, {}, false, wide) == Error::Ok);
  CHECK(wide.items<int64_t>()[0] == -1);
  // To Bool each item is converted: -1 and 1 are true.
  const auto signs = TestTensor::of<int8_t>({2}, {-1, 1});
  const TestTensor any(ScalarType::Bool, {});
  CHECK(sum(signs, {}, false, any) == Error::Ok);
  CHECK(any.items<uint8_t>()[0] == 1);
  // 2048 + 1 + 1: a sum in half would stay at 2048.
  const auto halves = TestTensor::of<Half>({3}, {Half(2048), Half(1), Half(1)});
  const TestTensor half(ScalarType::Half, {});
  CHECK(sum(halves, {}, false, half) == Error::Ok);
  CHECK(static_cast<float>(half.items<Half>()[0]) == 2050);
  // Indices 0 and 4 share a part, 1 and 5 another: nothing is lost in them.
  // Added one after the other, 1e8 + 1 would lose the 1.
  const auto ordered = TestTensor::of<float>({6}, {1e8F, 1, 0, 0, -1e8F, 1});
  const TestTensor out(ScalarType::Float, {});
  CHECK(sum(ordered, {}, false, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 2);
  // (1e8 + 1) + (-1e8 + 1): the parts are added in pairs.
  const auto pairs = TestTensor::of<float>({2, 2}, {1e8F, -1e8F, 1, 1}, {1, 0});
  CHECK(sum(pairs, {}, false, out) == Error::Ok);
  CHECK(out.items<float>()[0] == 0);
}

TEST_CASE("mean is rounded once") {
  const auto x = TestTensor::of<Half>({2}, {Half(65504), Half(65504)});
  const TestTensor out(ScalarType::Half, {});
  CHECK(mean(x, {}, false, out) == Error::Ok);
  CHECK(static_cast<float>(out.items<Half>()[0]) == 65504);
  const auto ints = TestTensor::of<int64_t>({2}, {1, 2});
  const TestTensor half(ScalarType::Float, {});
  CHECK(mean(ints, {}, false, half, 6) == Error::Ok);
  CHECK(half.items<float>()[0] == 1.5F);
  CHECK(mean(ints, {}, false, half) == Error::InvalidArgument);
  CHECK(Call().add(ints).integer(6).add(half).run(mean_dtype_out) == Error::Ok);
  CHECK(Call().add(ints).none().add(half).run(mean_dtype_out) ==
        Error::InvalidArgument);
  CHECK(mean(ints, {}, false, {ScalarType::Long, {}}, 4) ==
        Error::InvalidArgument);
}

TEST_CASE("sum and mean refuse what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const TestTensor out(ScalarType::Float, {2});
  for (const KernelFn kernel : {sum_IntList_out, mean_out}) {
    for (const Ints& dims : {Ints{2}, Ints{-3}, Ints{1, 1}, Ints{1, -1},
                             Ints{1LL << 32}, Ints{0}, Ints{}}) {
      CHECK(reduce(kernel, x, dims, false, out) == Error::InvalidArgument);
    }
    CHECK(reduce(kernel, x, {1}, true, out) == Error::InvalidArgument);
    CHECK(reduce(kernel, x, {1}, false, out, 7) == Error::InvalidArgument);
    CHECK(reduce(kernel, x, {1}, false, out, 99) == Error::InvalidArgument);
    const auto self = TestTensor(ScalarType::Float, {2, 2}).dynamic();
    CHECK(reduce(kernel, self, {1}, true, self) == Error::InvalidArgument);
    CHECK(self.sizes() == Sizes{2, 2});
    CHECK(reduce(kernel, {ScalarType::UInt16, {2, 3}}, {1}, false, out, 6) ==
          Error::DtypeNotSelected);
  }
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
}

Error argmax(const TestTensor& self, int64_t dim, bool keep,
             const TestTensor& out) {
  return Call().add(self).integer(dim).boolean(keep).add(out).run(argmax_out);
}

TEST_CASE("argmax finds the first of the largest, NaN before all") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = TestTensor::of<float>({2, 3}, {1, 3, 3, nan, 9, nan});
  const TestTensor out(ScalarType::Long, {2});
  CHECK(argmax(x, -1, false, out) == Error::Ok);
  CHECK(out.items<int64_t>() == Ints{1, 0});
  const TestTensor kept(ScalarType::Long, {1, 3});
  CHECK(argmax(x, 0, true, kept) == Error::Ok);
  CHECK(kept.items<int64_t>() == Ints{1, 1, 1});
  // Flattened by indices, not by memory.
  const auto turned =
      TestTensor::of<int8_t>({2, 3}, {1, 4, 7, 2, 3, 5}, {1, 0});
  const TestTensor one(ScalarType::Long, {});
  CHECK(Call().add(turned).none().boolean(false).add(one).run(argmax_out) ==
        Error::Ok);
  CHECK(one.items<int64_t>() == Ints{1});
  const auto lows = TestTensor::of<int64_t>({2}, {INT64_MIN, -1});
  CHECK(argmax(lows, 0, false, one) == Error::Ok);
  CHECK(one.items<int64_t>() == Ints{1});
  CHECK(argmax({ScalarType::Float, {0, 3}}, 1, false,
               {ScalarType::Long, {0}}) == Error::Ok);
}

TEST_CASE("argmax refuses what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 3});
  const TestTensor out(ScalarType::Long, {2});
  CHECK(argmax(x, 2, false, out) == Error::InvalidArgument);
  CHECK(argmax(x, 0, false, out) == Error::InvalidArgument);
  CHECK(argmax(x, 1, true, out) == Error::InvalidArgument);
  CHECK(argmax(x, 1, false, {ScalarType::Int, {2}}) == Error::InvalidArgument);
  // Nothing is the largest of nothing.
  CHECK(argmax({ScalarType::Float, {2, 0}}, 1, false, out) ==
        Error::InvalidArgument);
  CHECK(Call()
            .add({ScalarType::Float, {2, 0}})
            .none()
            .boolean(false)
            .add({ScalarType::Long, {}})
            .run(argmax_out) == Error::InvalidArgument);
  CHECK(argmax({ScalarType::Bool, {2, 3}}, 1, false, out) ==
        Error::DtypeNotSelected);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
}

Error largest(const TestTensor& self, int64_t dim, bool keep,
              const TestTensor& values, const TestTensor& indices) {
  return Call()
      .add(self)
      .integer(dim)
      .boolean(keep)
      .add(values)
      .add(indices)
      .run(max_dim_max);
}

TEST_CASE("max gives values and where they are") {
  const auto x = TestTensor::of<int16_t>({2, 3}, {1, 9, 9, -5, -7, -6});
  const auto values = TestTensor(ScalarType::Short, {2, 3}).dynamic();
  const auto indices = TestTensor(ScalarType::Long, {2, 3}).dynamic();
  CHECK(largest(x, -1, true, values, indices) == Error::Ok);
  CHECK(values.sizes() == Sizes{2, 1});
  CHECK(indices.sizes() == Sizes{2, 1});
  CHECK(values.items<int16_t>()[1] == -5);
  CHECK(indices.items<int64_t>()[0] == 1);
  CHECK(indices.items<int64_t>()[1] == 0);
  // The outputs may differ in dim order.
  const auto cube =
      TestTensor::of<int16_t>({2, 2, 2}, {0, 1, 3, 2, 4, 5, 7, 6});
  const TestTensor flat(ScalarType::Short, {2, 2});
  const TestTensor turned(ScalarType::Long, {2, 2}, {1, 0});
  CHECK(largest(cube, 0, false, flat, turned) == Error::Ok);
  CHECK(flat.items<int16_t>() == std::vector<int16_t>{4, 5, 7, 6});
  CHECK(largest(cube, 2, false, flat, turned) == Error::Ok);
  CHECK(flat.items<int16_t>() == std::vector<int16_t>{1, 3, 5, 7});
  CHECK(turned.items<int64_t>() == Ints{1, 1, 0, 0});
}

TEST_CASE("max refuses what does not fit") {
  const TestTensor x(ScalarType::Short, {2, 3});
  const TestTensor values(ScalarType::Short, {2});
  const TestTensor indices(ScalarType::Long, {2});
  CHECK(largest(x, 2, false, values, indices) == Error::InvalidArgument);
  CHECK(largest(x, 0, false, values, indices) == Error::InvalidArgument);
  CHECK(largest(x, 1, false, {ScalarType::Int, {2}}, indices) ==
        Error::InvalidArgument);
  CHECK(largest(x, 1, false, values, {ScalarType::Int, {2}}) ==
        Error::InvalidArgument);
  CHECK(largest(x, 1, false, values, {ScalarType::Long, {3}}) ==
        Error::InvalidArgument);
  CHECK(largest({ScalarType::Short, {2, 0}}, 1, false, values, indices) ==
        Error::InvalidArgument);
  const TestTensor words(ScalarType::UInt16, {2, 3});
  CHECK(largest(words, 1, false, {ScalarType::UInt16, {2}}, indices) ==
        Error::DtypeNotSelected);
  CHECK(values.items<uint8_t>()[0] == TestTensor::kPattern);
  CHECK(indices.items<uint8_t>()[0] == TestTensor::kPattern);
}

TEST_CASE("any finds an item that is not 0") {
  const auto x = TestTensor::of<float>({2, 2}, {0, -0.0F, 0, std::nanf("")});
  const TestTensor rows(ScalarType::Bool, {2});
  const auto any = [](const TestTensor& self, int64_t dim, bool keep,
                      const TestTensor& out) {
    return Call().add(self).integer(dim).boolean(keep).add(out).run(any_out);
  };
  CHECK(any(x, 1, false, rows) == Error::Ok);
  CHECK(rows.items<bool>() == std::vector<bool>{false, true});
  const TestTensor kept(ScalarType::Byte, {1, 2});
  CHECK(any(x, -2, true, kept) == Error::Ok);
  CHECK(kept.items<uint8_t>() == std::vector<uint8_t>{0, 1});
  const TestTensor one(ScalarType::Bool, {});
  CHECK(Call().add(x).add(one).run(any_all_out) == Error::Ok);
  CHECK(one.items<bool>() == std::vector<bool>{true});
  // 256 is not 0, though its last byte is.
  const auto ints = TestTensor::of<int32_t>({2}, {0, 256});
  const TestTensor byte(ScalarType::Byte, {});
  CHECK(Call().add(ints).add(byte).run(any_all_out) == Error::Ok);
  CHECK(byte.items<uint8_t>() == std::vector<uint8_t>{1});
  CHECK(Call().add({ScalarType::Int, {0}}).add(byte).run(any_all_out) ==
        Error::Ok);
  CHECK(byte.items<uint8_t>() == std::vector<uint8_t>{0});
}

TEST_CASE(
    "any over several dimensions: None is all of them, a list what it has") {
  const auto x = TestTensor::of<int8_t>({2, 2}, {0, 3, 0, 0});
  const auto any = [&x](const Ints& dims, const TestTensor& out) {
    return Call().add(x).ints(dims).boolean(false).add(out).run(any_dims_out);
  };
  const TestTensor one(ScalarType::Bool, {});
  const TestTensor rows(ScalarType::Bool, {2});
  const TestTensor same(ScalarType::Bool, {2, 2});
  CHECK(any({0, 1}, one) == Error::Ok);
  CHECK(one.items<bool>() == std::vector<bool>{true});
  CHECK(any({0}, rows) == Error::Ok);
  CHECK(rows.items<bool>() == std::vector<bool>{false, true});
  CHECK(any({}, same) == Error::Ok);
  CHECK(same.items<bool>() == std::vector<bool>{false, true, false, false});
  CHECK(Call().add(x).none().boolean(false).add(one).run(any_dims_out) ==
        Error::Ok);
  CHECK(any({0, 0}, rows) == Error::InvalidArgument);
  CHECK(any({2}, rows) == Error::InvalidArgument);
  CHECK(any({0}, one) == Error::InvalidArgument);
  CHECK(any({0}, {ScalarType::Int, {2}}) == Error::InvalidArgument);
  const TestTensor words(ScalarType::UInt16, {2});
  CHECK(Call().add(words).add(one).run(any_all_out) == Error::DtypeNotSelected);
}

TEST_CASE("var takes the correction off the number of items") {
  const auto x = TestTensor::of<float>({2, 2}, {1, 3, 1e6F, 1e6F + 2});
  const TestTensor out(ScalarType::Float, {2});
  const auto var = [](const TestTensor& self, const Ints& dims, double less,
                      const TestTensor& to) {
    return Call().add(self).ints(dims).number(less).boolean(false).add(to).run(
        var_correction_out);
  };
  CHECK(var(x, {1}, 0, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{1, 1});
  CHECK(var(x, {1}, 1.5, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{4, 4});
  CHECK(var(x, {1}, 3, out) == Error::Ok);
  CHECK(std::isinf(out.items<float>()[0]));
  CHECK(Call().add(x).ints({1}).none().boolean(false).add(out).run(
            var_correction_out) == Error::Ok);
  CHECK(out.items<float>() == Floats{2, 2});
  CHECK(var({ScalarType::Float, {2, 0}}, {1}, 0, out) == Error::Ok);
  CHECK(std::isnan(out.items<float>()[0]));
  CHECK(var(x, {2}, 0, out) == Error::InvalidArgument);
  CHECK(var(x, {1, 1}, 0, out) == Error::InvalidArgument);
  CHECK(var(x, {}, 0, out) == Error::InvalidArgument);
  const TestTensor wide(ScalarType::Double, {2});
  CHECK(var(x, {1}, 0, wide) == Error::Ok);
  CHECK(wide.items<double>() == std::vector<double>{1, 1});
  const TestTensor ints(ScalarType::Int, {2, 2});
  CHECK(var(ints, {1}, 0, {ScalarType::Int, {2}}) == Error::DtypeNotSelected);
}

TEST_CASE("var_mean is exact where the first sum is not") {
  std::vector<float> items(1000, 0.1F);
  const auto x = TestTensor::of<float>({1000}, items);
  const TestTensor var(ScalarType::Float, {});
  const TestTensor mean(ScalarType::Double, {});
  const TestTensor narrow(ScalarType::Float, {});
  const auto run = [&](const TestTensor& means) {
    return Call().add(x).none().none().boolean(false).add(var).add(means).run(
        var_mean_correction_out);
  };
  CHECK(run(narrow) == Error::Ok);
  CHECK(narrow.items<float>() == Floats{0.1F});
  CHECK(var.items<float>()[0] < 1e-16F);
  CHECK(run(mean) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
