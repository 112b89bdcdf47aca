// Operators that move items: what programs of PyTorch do not have. Hostile
// numbers, lists and outputs.
#include <doctest/doctest.h>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using namespace portable;
using Ints = std::vector<int64_t>;
using Bytes = std::vector<uint8_t>;

constexpr ScalarType kByte = ScalarType::Byte;
constexpr int64_t kMany = int64_t{1} << 30;

TestTensor counted(Sizes sizes) {
  TestTensor made(kByte, std::move(sizes));
  for (size_t i = 0; i < made.bytes(); ++i) {
    made.data()[i] = static_cast<uint8_t>(i);
  }
  return made;
}

/// The error of a call with one list, into an output that takes any small
/// sizes.
Error with_list(KernelFn kernel, const TestTensor& self, const Ints& list,
                bool with_number = false) {
  const auto out = TestTensor(kByte, Sizes(self.sizes())).dynamic();
  Call call;
  call.add(self).ints(list);
  if (with_number) call.integer(7);
  const Error error = call.add(out).run(kernel);
  if (error == Error::Ok) return error;
  for (size_t i = 0; i < out.bytes(); ++i) {
    CHECK(out.data()[i] == TestTensor::kPattern);
  }
  return error;
}

TEST_CASE("constant_pad_nd checks sizes in 64 bits") {
  const TestTensor x = counted({2, 3});
  const auto pad = [&](const Ints& list) {
    return with_list(constant_pad_nd_out, x, list, true);
  };
  CHECK(pad({-1, 1}) == Error::Ok);
  CHECK(pad({-3, 0}) == Error::Ok);
  CHECK(pad({1}) == Error::InvalidArgument);
  CHECK(pad({0, 0, 0, 0, 0, 0}) == Error::InvalidArgument);
  CHECK(pad({-4, 4}) == Error::InvalidArgument);
  CHECK(pad({-2, -2}) == Error::InvalidArgument);
  CHECK(pad({4, -4}) == Error::InvalidArgument);
  CHECK(pad({INT64_MIN, 0}) == Error::InvalidArgument);
  CHECK(pad({kMany + 1, 0}) == Error::InvalidArgument);
  CHECK(pad({kMany, kMany}) == Error::ShapeTooLarge);
  CHECK(pad({1, 0}) == Error::ShapeTooLarge);
  CHECK(pad({kMany, 0, kMany, 0}) == Error::ShapeTooLarge);
}

TEST_CASE("reflection_pad and replication_pad read items that exist") {
  const TestTensor x = counted({1, 3});
  for (KernelFn kernel : {reflection_pad1d_out, replication_pad1d_out}) {
    const auto pad = [&](const Ints& list) {
      return with_list(kernel, x, list);
    };
    CHECK(pad({2, -2}) == Error::Ok);
    CHECK(pad({-5, 2}) == Error::Ok);  // no item
    CHECK(pad({-4, 0}) == Error::InvalidArgument);
    CHECK(pad({0}) == Error::InvalidArgument);
    CHECK(pad({0, 0, 0, 0}) == Error::InvalidArgument);
    CHECK(pad({-kMany - 1, 0}) == Error::InvalidArgument);
    CHECK(pad({-kMany, INT64_MAX}) == Error::InvalidArgument);
    CHECK(with_list(kernel, counted({3}), {0, 0}) == Error::InvalidArgument);
  }
  CHECK(with_list(reflection_pad1d_out, x, {3, -3}) == Error::InvalidArgument);
  CHECK(with_list(reflection_pad1d_out, x, {-3, 3}) == Error::InvalidArgument);
  CHECK(with_list(replication_pad1d_out, x, {3, -3}) == Error::Ok);
  CHECK(with_list(replication_pad1d_out, x, {kMany, kMany}) ==
        Error::ShapeTooLarge);
  CHECK(with_list(replication_pad1d_out, x, {-kMany, kMany}) == Error::Ok);
  CHECK(with_list(replication_pad1d_out, {kByte, {1, 0}}, {1, 0}) ==
        Error::InvalidArgument);
}

Error strided(const TestTensor& self, const Ints& size, const Ints& stride,
              int64_t offset) {
  const auto out = TestTensor(kByte, Sizes(size.size(), 2)).dynamic();
  return Call().add(self).ints(size).ints(stride).integer(offset).add(out).run(
      as_strided_copy_out);
}

TEST_CASE("as_strided_copy stays within the memory of its input") {
  const TestTensor x = counted({6});
  CHECK(strided(x, {2, 2}, {1, 3}, 1) == Error::Ok);
  CHECK(strided(x, {2, 2}, {1, 3}, 2) == Error::InvalidArgument);
  CHECK(strided(x, {1, 1}, {INT64_MAX, INT64_MAX}, 5) == Error::Ok);
  CHECK(strided(x, {1, 1}, {1, 1}, 6) == Error::InvalidArgument);
  CHECK(strided(x, {1, 1}, {1, 1}, INT64_MAX) == Error::InvalidArgument);
  CHECK(strided(x, {1, 1}, {1, 1}, -1) == Error::InvalidArgument);
  CHECK(strided(x, {0, 2}, {9, 9}, 99) == Error::Ok);
  CHECK(strided(x, {2, 2}, {1, -1}, 3) == Error::InvalidArgument);
  CHECK(strided(x, {-2, 2}, {1, 1}, 0) == Error::InvalidArgument);
  CHECK(strided(x, {2, 2}, {1}, 0) == Error::InvalidArgument);
  CHECK(strided(x, Ints(9, 1), Ints(9, 1), 0) == Error::InvalidArgument);
  // 2^31 * 2^33 is 0 in 64 bits.
  CHECK(strided(x, {2, INT32_MAX}, {1, int64_t{1} << 33}, 0) ==
        Error::InvalidArgument);
  CHECK(strided(x, {INT32_MAX, INT32_MAX}, {0, 0}, 0) == Error::ShapeTooLarge);
  CHECK(strided(x, {INT64_MAX, 1}, {0, 0}, 0) == Error::ShapeTooLarge);
}

TEST_CASE("repeat, unfold_copy and pixel_shuffle check sizes in 64 bits") {
  const TestTensor x = counted({2, 3});
  CHECK(with_list(repeat_out, x, {1, 1}) == Error::Ok);
  CHECK(with_list(repeat_out, x, {INT64_MAX, 0}) == Error::ShapeTooLarge);
  CHECK(with_list(repeat_out, x, {1, -1}) == Error::InvalidArgument);
  CHECK(with_list(repeat_out, x, {1}) == Error::InvalidArgument);
  CHECK(with_list(repeat_out, x, Ints(9, 1)) == Error::InvalidArgument);
  CHECK(with_list(repeat_out, x, {1, kMany}) == Error::ShapeTooLarge);
  const auto unfold = [&](int64_t size, int64_t step) {
    const auto out = TestTensor(kByte, {2, 3, 3}).dynamic();
    return Call().add(x).integer(1).integer(size).integer(step).add(out).run(
        unfold_copy_out);
  };
  CHECK(unfold(3, INT64_MAX) == Error::Ok);
  CHECK(unfold(4, 1) == Error::InvalidArgument);
  CHECK(unfold(INT64_MIN, 1) == Error::InvalidArgument);
  CHECK(unfold(1, 0) == Error::InvalidArgument);
  const TestTensor none(kByte, {0, 2, 2});
  const auto shuffle = [&](KernelFn kernel, int64_t factor) {
    const auto out = TestTensor(kByte, {4, 4, 4}).dynamic();
    return Call().add(none).integer(factor).add(out).run(kernel);
  };
  for (KernelFn kernel : {pixel_shuffle_out, pixel_unshuffle_out}) {
    CHECK(shuffle(kernel, 2) == Error::Ok);
    CHECK(shuffle(kernel, 0) == Error::InvalidArgument);
    CHECK(shuffle(kernel, kMany + 1) == Error::InvalidArgument);
  }
  CHECK(shuffle(pixel_shuffle_out, kMany) == Error::ShapeTooLarge);
  CHECK(shuffle(pixel_unshuffle_out, kMany) == Error::InvalidArgument);
}

TEST_CASE("roll takes any shifts, and adds those of one dimension") {
  const TestTensor x = counted({1, 3});
  const TestTensor out(kByte, {1, 3});
  const auto roll = [&](const Ints& shifts, const Ints& dims) {
    return Call().add(x).ints(shifts).ints(dims).add(out).run(roll_out);
  };
  CHECK(roll({INT64_MAX}, {1}) == Error::Ok);  // 1 more than a multiple of 3
  CHECK(out.items<uint8_t>() == Bytes{2, 0, 1});
  CHECK(roll({INT64_MIN}, {}) == Error::Ok);  // 2 less
  CHECK(out.items<uint8_t>() == Bytes{2, 0, 1});
  CHECK(roll({INT64_MAX, INT64_MAX, -1}, {1, -1, 1}) == Error::Ok);
  CHECK(out.items<uint8_t>() == Bytes{2, 0, 1});
  CHECK(roll({1, 1}, {}) == Error::InvalidArgument);
  CHECK(roll({}, {}) == Error::InvalidArgument);
  CHECK(roll({1}, {2}) == Error::InvalidArgument);
}

TEST_CASE("repeat_interleave refuses counts before it writes") {
  const auto repeat = [](std::vector<int64_t> counts, const Ints& size = {}) {
    const int32_t count = static_cast<int32_t>(counts.size());
    const auto given = TestTensor::of<int64_t>({count}, std::move(counts));
    const auto out = TestTensor(ScalarType::Long, {3}).dynamic();
    Call call;
    call.add(given);
    size.empty() ? call.none() : call.integer(size[0]);
    return call.add(out).run(repeat_interleave_Tensor_out);
  };
  CHECK(repeat({0, 3}) == Error::Ok);
  CHECK(repeat({0, 3}, {3}) == Error::Ok);
  CHECK(repeat({0, 3}, {2}) == Error::InvalidArgument);
  CHECK(repeat({1, -1}) == Error::InvalidArgument);
  CHECK(repeat({2, 2}) == Error::ShapeTooLarge);
  CHECK(repeat({INT64_MAX, INT64_MAX, 2}) == Error::ShapeTooLarge);
  CHECK(repeat({INT32_MAX, 1}) == Error::ShapeTooLarge);
}

TEST_CASE(
    "repeat_interleave into its own counts writes no more than it counted") {
  // Writes 0, 0, 0 over the counts; and a count that becomes larger than what
  // is left is refused.
  const auto counts = TestTensor::of<int64_t>({3}, {1, 0, 2});
  Call call;
  const Error error =
      call.add(counts).none().add(counts).run(repeat_interleave_Tensor_out);
  CHECK((error == Error::Ok || error == Error::InvalidArgument));
}

TEST_CASE("tril and diagonal_copy take any number for a diagonal") {
  const TestTensor x = counted({2, 2});
  const TestTensor out(kByte, {2, 2});
  const auto tril = [&](int64_t diagonal) {
    return Call().add(x).integer(diagonal).add(out).run(tril_out);
  };
  CHECK(tril(INT64_MAX) == Error::Ok);
  CHECK(out.items<uint8_t>() == Bytes{0, 1, 2, 3});
  CHECK(tril(INT64_MIN) == Error::Ok);
  CHECK(out.items<uint8_t>() == Bytes{0, 0, 0, 0});
  const TestTensor same = counted({2, 2});
  CHECK(Call().add(same).integer(0).add(same).run(tril_out) == Error::Ok);
  CHECK(same.items<uint8_t>() == Bytes{0, 0, 2, 3});
  for (const int64_t offset : {INT64_MIN, INT64_MAX}) {
    const TestTensor none(kByte, {0});
    CHECK(Call().add(x).integer(offset).integer(0).integer(1).add(none).run(
              diagonal_copy_out) == Error::Ok);
  }
}

TEST_CASE("scatters into their own input write only the new items") {
  const TestTensor x = counted({2, 2});
  const auto row = TestTensor::of<float>({2}, {7.9F, -1});
  CHECK(Call().add(x).add(row).integer(0).integer(-1).add(x).run(
            select_scatter_out) == Error::Ok);
  CHECK(x.items<uint8_t>() == Bytes{0, 1, 7, 255});
  const auto column = TestTensor::of<uint8_t>({2, 1}, {8, 9});
  CHECK(Call()
            .add(x)
            .add(column)
            .integer(1)
            .none()
            .none()
            .integer(INT64_MAX)
            .add(x)
            .run(slice_scatter_out) == Error::Ok);
  CHECK(x.items<uint8_t>() == Bytes{8, 1, 9, 255});
  CHECK(Call().add(x).add(column).integer(0).integer(0).add(x).run(
            select_scatter_out) == Error::InvalidArgument);
}

TEST_CASE("outputs of a list are checked together") {
  const TestTensor x = counted({3, 2});
  const TestTensor two(kByte, {2, 2});
  const TestTensor one(kByte, {1, 2});
  const auto split = [&](int64_t size,
                         const std::vector<const TestTensor*>& outs) {
    return Call().add(x).integer(size).integer(0).tensors(outs).run(
        split_copy_Tensor_out);
  };
  CHECK(split(2, {&two, &one}) == Error::Ok);
  CHECK(split(2, {&two}) == Error::InvalidArgument);
  CHECK(split(2, {&two, nullptr}) == Error::InvalidArgument);
  CHECK(split(0, {}) == Error::InvalidArgument);
  CHECK(split(-1, {}) == Error::InvalidArgument);
  CHECK(split(INT64_MAX, {&two}) == Error::InvalidArgument);
  const TestTensor row(kByte, {2});
  const auto unbind = [&](const std::vector<const TestTensor*>& outs) {
    return Call().add(x).integer(0).tensors(outs).run(unbind_copy_int_out);
  };
  CHECK(unbind({&row, &row, &row}) == Error::Ok);
  CHECK(unbind({&row, &row}) == Error::InvalidArgument);
  CHECK(unbind({&row, nullptr, &row}) == Error::InvalidArgument);
  CHECK(unbind({&row, &one, &row}) == Error::InvalidArgument);
  const TestTensor stacked(kByte, {2, 2});
  CHECK(
      Call().tensors({&row, nullptr}).integer(0).add(stacked).run(stack_out) ==
      Error::InvalidArgument);
  CHECK(Call().tensors({}).integer(0).add(stacked).run(stack_out) ==
        Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
