// Compact tables, with value indices of one byte and of two.
#include <cstring>

#include "doctest/doctest.h"
#include "orch/integrity.h"
#include "orch/model.h"

namespace orch::test {
namespace {

static_assert(sizeof(Value) == 3 * sizeof(void*));
static_assert(sizeof(Instruction) == 2 * sizeof(void*));

float items[6] = {};
// Sizes, and behind them the dim order as bytes of words.
constexpr int32_t kSizes[] = {2, 3};
constexpr int32_t kColumns[] = {2, 3, 0x0001};
constexpr int32_t kFive[] = {1, 2, 3, 1, 1, 0x02010004, 3};

Value tensor(uint8_t dim, uint8_t flags, const int32_t* dims) {
  return Value(Tensor{Tag::Tensor, ScalarType::Float, dim, flags, items, dims});
}

TEST_CASE("a dim order lies behind the sizes unless it is in order") {
  const Value rows = tensor(2, Tensor::kContiguous, kSizes);
  const Value columns = tensor(2, 0, kColumns);
  const Value five = tensor(5, 0, kFive);
  CHECK(rows.tensor().order()[0] == 0);
  CHECK(rows.tensor().order()[1] == 1);
  CHECK(columns.tensor().order()[0] == 1);
  CHECK(columns.tensor().order()[1] == 0);
  const uint8_t order[] = {4, 0, 1, 2, 3};
  CHECK(std::memcmp(five.tensor().order(), order, sizeof order) == 0);
  CHECK(Strides(columns.tensor())[0] == 1);
  CHECK(Strides(columns.tensor())[1] == 2);
  CHECK(same_layout(rows.tensor(), rows.tensor()));
  CHECK(same_layout(columns.tensor(), columns.tensor()));
  CHECK(!same_layout(rows.tensor(), columns.tensor()));
  CHECK(!same_layout(rows.tensor(), five.tensor()));
}

TEST_CASE("sizes of a dynamic tensor follow its capacity") {
  int32_t words[] = {6 * sizeof(float), 2, 3};
  Value value = tensor(2, Tensor::kContiguous | Tensor::kDynamic, words + 1);
  const int32_t fewer[] = {1, 3};
  const int32_t more[] = {3, 3};
  CHECK(resize(value.tensor(), fewer) == Error::Ok);
  CHECK(value.tensor().numel() == 3);
  CHECK(resize(value.tensor(), more) == Error::ShapeTooLarge);
}

TEST_CASE("lists name values with the bytes of an index") {
  constexpr ValueIndex kTensors[] = {2, kNoValue, 0};
  constexpr IntItem kInts[] = {1, 1, 0};
  Value values[] = {Value(Scalar{Tag::Int, {5, 0}}),
                    Value(Scalar{Tag::Int, {0xFFFFFFFFU, 0xFFFFFFFFU}}),
                    tensor(2, Tensor::kContiguous, kSizes)};
  const List tensors{Tag::TensorList, 3, kTensors};
  const List ints{Tag::IntList, 3, kInts};
  CHECK(tensors.tensor_index(0) == 2);
  CHECK(tensors.tensor_index(1) == -1);
  const TensorList found(tensors, values);
  CHECK(found[0] == &values[2].tensor());
  CHECK(found[1] == nullptr);
  CHECK(found[2] == nullptr);  // no tensor
  const IntList numbers(ints, values);
  CHECK(numbers[0] == -1);
  CHECK(numbers[2] == 5);
}

Error add(const Args& args) {
  args.value(2).set_int(args.integer(0) + args.integer(1));
  return Error::Ok;
}

Error fail_at(const Args& args) {
  return args.integer(0) > 9 ? Error::InvalidArgument : Error::Ok;
}

// v2 = v0 + v1; v0 = v2; again while v3; fails if v0 > 9
constexpr InstructionTable<4, 4> kCode = {
    {Instruction({add, 0}, 3), Instruction(Instruction::Move{2, 0}),
     Instruction({fail_at, 3}, 1), Instruction(Instruction::Jump{3, 0})},
    {0, 1, 2, 0}};

TEST_CASE("arguments of calls lie behind the instructions") {
  Value values[] = {
      Value(Scalar{Tag::Int, {1, 0}}), Value(Scalar{Tag::Int, {3, 0}}),
      Value(Scalar{Tag::Int, {0, 0}}), Value(Scalar{Tag::Bool, {1, 0}})};
  const MethodImage image = {kCode.instructions, values, {}, {}, kCode.args};
  RunStatus status = execute(image);
  CHECK(status.error == Error::Ok);
  CHECK(status.instruction == 4);
  CHECK(values[0].to_int() == 4);

  values[3].set_bool(false);
  status = execute(image);
  CHECK(status.error == Error::InvalidArgument);
  CHECK(status.instruction == 2);
  CHECK(values[0].to_int() == 10);

  values[0].set_int(-100);
  status = execute(image, 6);
  CHECK(status.error == Error::InstructionLimit);
  CHECK(status.instruction == 2);
}

TEST_CASE("where arguments begin is compared as well") {
  const uint32_t words[] = {3U << 8, 0, 0, 1, 2, 0, 1U << 8, 3, 0, 2, 3, 0};
  const uint32_t crc = crc32(words, sizeof words);
  CHECK(check_tables({}, kCode.instructions, crc) == Error::Ok);
  InstructionTable<4, 4> damaged = kCode;
  damaged.instructions[2].first_arg = 2;
  CHECK(check_tables({}, damaged.instructions, crc) == Error::ImageDamaged);
}

TEST_CASE("a method is the image that it was linked with") {
  int32_t to = 0;
  const int32_t from = 7;
  const InitialBytes initial[] = {{&to, &from, sizeof to}};
  Value values[] = {Value(Scalar{Tag::Int, {8, 0}})};
  constexpr ValueIndex kFirst[] = {0};
  const PrelinkedMethod prelinked = {
      {{}, values, kFirst, kFirst, nullptr}, initial, 4};
  LoadedMethod loaded;
  const ModelMethod method = {&loaded, &prelinked, start_prelinked};
  CHECK(prepare(method) == Error::Ok);
  CHECK(to == 7);
  CHECK(loaded.state_used == 4);
  CHECK(&image_of(method) == &prelinked.image);
  CHECK(&input(method, 0) == values);
  CHECK(&output(method, 0) == values);
  to = 0;
  CHECK(prepare(method) == Error::Ok);
  CHECK(to == 0);  // was ready
}

}  // namespace
}  // namespace orch::test
