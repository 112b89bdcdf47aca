// Group norm, batch norm by its own statistics, glu, cumsum, prod, linear.
#include <doctest/doctest.h>

#include <cmath>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr ScalarType kFloat = ScalarType::Float;

/// Arguments of a group norm that are not tensors.
struct GroupNorm {
  int64_t n = 1;
  int64_t c = 2;
  int64_t area = 2;
  int64_t groups = 1;

  Error operator()(const TestTensor& input, const TestTensor* weight,
                   const TestTensor& out, const TestTensor& mean,
                   const TestTensor& rstd) const {
    Call call;
    call.add(input);
    weight == nullptr ? call.none() : call.add(*weight);
    call.none().integer(n).integer(c).integer(area).integer(groups).number(0);
    return call.add(out).add(mean).add(rstd).run(native_group_norm_out);
  }
};

TEST_CASE("group norm between dim orders") {
  const auto x =
      TestTensor::of<float>({1, 2, 1, 2}, {1, 5, 3, 9}, {0, 2, 3, 1});
  const auto weight = TestTensor::of<float>({2}, {1, 10});
  const TestTensor out(kFloat, {1, 2, 1, 2});
  const TestTensor mean(kFloat, {1, 2}, {1, 0});
  const TestTensor rstd(kFloat, {1, 2});
  CHECK(GroupNorm{1, 2, 2, 2}(x, &weight, out, mean, rstd) == Error::Ok);
  CHECK(out.items<float>() == Floats{-1, 1, -10, 10});
  CHECK(mean.items<float>() == Floats{2, 7});
  CHECK(rstd.items<float>() == Floats{1, 0.5F});
  const TestTensor none(kFloat, {1, 2, 0});
  CHECK(GroupNorm{1, 2, 0, 2}(none, &weight, none, mean, rstd) == Error::Ok);
  CHECK(mean.items<float>() == Floats{0, 0});
  CHECK(std::isnan(rstd.items<float>()[1]));
}

TEST_CASE("group norm refuses what does not fit") {
  const TestTensor x(kFloat, {1, 2, 2});
  const TestTensor out(kFloat, {1, 2, 2});
  const TestTensor mean(kFloat, {1, 1});
  const TestTensor rstd(kFloat, {1, 1});
  const TestTensor weight(kFloat, {3});
  for (const GroupNorm& wrong :
       {GroupNorm{2}, GroupNorm{1, 3}, GroupNorm{1, 2, 3},
        GroupNorm{1, 2, 2, 0}, GroupNorm{1, 2, 2, -1}, GroupNorm{1, 2, 2, 3},
        GroupNorm{1, 2, 2, (1LL << 32) + 1}, GroupNorm{1, 2, 2, 2}}) {
    CHECK(wrong(x, nullptr, out, mean, rstd) == Error::InvalidArgument);
  }
  CHECK(GroupNorm()(x, &weight, out, mean, rstd) == Error::InvalidArgument);
  CHECK(GroupNorm()({kFloat, {2}}, nullptr, out, mean, rstd) ==
        Error::InvalidArgument);
  // A weight that would get the sizes of an output is no weight any more.
  const auto shared = TestTensor(kFloat, {2}).dynamic();
  CHECK(GroupNorm()(x, &shared, out, shared, rstd) == Error::InvalidArgument);
  CHECK(out.items<uint8_t>()[0] == TestTensor::kPattern);
}

TEST_CASE("batch norm by the statistics of its input") {
  const auto x = TestTensor::of<float>({2, 2}, {1, 10, 3, 30});
  const TestTensor out(kFloat, {2, 2}, {1, 0});
  const TestTensor mean(kFloat, {2});
  const TestTensor rstd(kFloat, {2});
  const auto run = [&](const TestTensor& self, const TestTensor& to) {
    return Call()
        .add(self)
        .none()
        .none()
        .boolean(true)
        .number(0.1)
        .number(0)
        .add(to)
        .add(mean)
        .add(rstd)
        .run(_native_batch_norm_legit_no_stats_out);
  };
  CHECK(run(x, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{-1, 1, -1, 1});
  CHECK(mean.items<float>() == Floats{2, 20});
  CHECK(rstd.items<float>() == Floats{1, 0.1F});
  CHECK(run({kFloat, {2}}, {kFloat, {2}}) == Error::InvalidArgument);
  CHECK(run({kFloat, {2, 3}}, {kFloat, {2, 3}}) == Error::InvalidArgument);
  CHECK(run({ScalarType::Double, {2, 2}}, {ScalarType::Double, {2, 2}}) ==
        Error::InvalidArgument);
}

TEST_CASE("batch norm with training is refused") {
  const TestTensor x(kFloat, {2, 2});
  const TestTensor channel(kFloat, {2});
  const TestTensor none(kFloat, {0});
  Call call;
  call.add(x).none().none().add(channel).add(channel).boolean(true);
  CHECK(call.number(0.1).number(0).add(x).add(none).add(none).run(
            _native_batch_norm_legit_out) == Error::NotSupported);
}

TEST_CASE("glu halves a dimension") {
  const auto x = TestTensor::of<float>({2, 2}, {3, 8, 0, 200}, {1, 0});
  const TestTensor out(kFloat, {2, 1});
  const auto glu = [](const TestTensor& self, int64_t dim,
                      const TestTensor& to) {
    return Call().add(self).integer(dim).add(to).run(glu_out);
  };
  CHECK(glu(x, -1, out) == Error::Ok);
  CHECK(out.items<float>() == Floats{1.5F, 8});
  const TestTensor wide(ScalarType::Double, {2, 1});
  CHECK(glu(x, 1, wide) == Error::Ok);
  CHECK(wide.items<double>() == std::vector<double>{1.5, 8});
  CHECK(glu(x, 2, out) == Error::InvalidArgument);
  CHECK(glu({kFloat, {2, 3}}, 1, out) == Error::InvalidArgument);
  CHECK(glu({kFloat, {}}, 0, {kFloat, {}}) == Error::InvalidArgument);
}

TEST_CASE("cumsum and prod convert items first") {
  const auto x = TestTensor::of<float>({2, 2}, {1.5F, 2.5F, -3.5F, 1});
  const TestTensor sums(ScalarType::Char, {2, 2}, {1, 0});
  const auto cumsum = [](const TestTensor& self, int64_t dim, int64_t dtype,
                         const TestTensor& out) {
    return Call().add(self).integer(dim).integer(dtype).add(out).run(
        cumsum_out);
  };
  CHECK(cumsum(x, 1, 1, sums) == Error::Ok);
  CHECK(sums.items<int8_t>() == std::vector<int8_t>{1, -3, 3, -2});
  CHECK(cumsum(x, 1, 2, sums) == Error::InvalidArgument);
  CHECK(cumsum(x, 2, 1, sums) == Error::InvalidArgument);
  CHECK(cumsum(x, 1, 6, x) == Error::Ok);  // in place
  CHECK(x.items<float>() == Floats{1.5F, 4, -3.5F, -2.5F});
  const auto ints = TestTensor::of<int32_t>({2}, {1 << 20, 1 << 20});
  const TestTensor wide(ScalarType::Long, {});
  CHECK(Call().add(ints).none().add(wide).run(prod_out) == Error::Ok);
  CHECK(wide.items<int64_t>()[0] == int64_t{1} << 40);
  CHECK(Call().add(ints).integer(0).boolean(false).integer(3).add(wide).run(
            prod_int_out) == Error::InvalidArgument);
  CHECK(Call().add({kFloat, {0}}).integer(4).add(wide).run(prod_out) ==
        Error::Ok);
  CHECK(wide.items<int64_t>()[0] == 1);
}

TEST_CASE("linear of rows that lie unevenly") {
  // x[i][j][k] = 4i + 2j + k
  const auto x =
      TestTensor::of<float>({2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7}, {2, 0, 1});
  const auto odd =
      TestTensor::of<float>({2, 2, 2}, {0, 4, 1, 5, 2, 6, 3, 7}, {1, 2, 0});
  const auto weight = TestTensor::of<float>({1, 2}, {10, 1}, {1, 0});
  const auto bias = TestTensor::of<float>({}, {100});
  const TestTensor out(kFloat, {2, 2, 1});
  const auto linear = [&](const TestTensor& input, const TestTensor& shift) {
    return Call().add(input).add(weight).add(shift).add(out).run(linear_out);
  };
  for (const TestTensor* input : {&x, &odd}) {
    CHECK(linear(*input, bias) == Error::Ok);
    CHECK(out.items<float>() == Floats{101, 123, 145, 167});
  }
  const auto row = TestTensor::of<float>({2}, {1, 2});
  CHECK(Call().add(row).add(weight).none().add({kFloat, {1}}).run(linear_out) ==
        Error::Ok);
  CHECK(linear(x, {kFloat, {2}}) == Error::InvalidArgument);
  CHECK(linear(x, {kFloat, {1, 1}}) == Error::InvalidArgument);
  CHECK(linear({kFloat, {2, 2, 3}}, bias) == Error::InvalidArgument);
  CHECK(linear({kFloat, {}}, bias) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
