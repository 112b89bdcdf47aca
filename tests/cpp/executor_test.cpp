// The executor, and the interface to linked models on top of it.
#include <functional>
#include <vector>

#include "orch/method.h"
#include "orch/model.h"
#include "support/call.h"
#include "support/kernels.h"
#include "support/load.h"

namespace orch::test {
namespace {

/// test::plus(int a, int b) -> int
Error plus(const Args& args) {
  args.value(2).set_int(args.integer(0) + args.integer(1));
  return Error::Ok;
}

/// test::less(int a, int b) -> bool
Error less(const Args& args) {
  args.value(2).set_bool(args.integer(0) < args.integer(1));
  return Error::Ok;
}

/// test::less.out(int a, int b, *, Tensor(a!) out) -> Tensor(a!)
Error less_out(const Args& args) {
  *args.tensor(2).mutable_data<uint8_t>() = args.integer(0) < args.integer(1);
  return Error::Ok;
}

/// test::twice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!), of floats
Error twice_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  Tensor& out = args.tensor(1);
  ORCH_TRY(resize(out, self.sizes()));
  for (int32_t i = 0; i < self.numel(); ++i) {
    out.mutable_data<float>()[i] = 2 * self.data<float>()[i];
  }
  return Error::Ok;
}

Error refuse(const Args&) { return Error::NotSupported; }

constexpr Kernel kConvolution[] = {
    {"aten::convolution.out", "TTT?JJJBJIt", nullptr, portable::convolution_out,
     kAll},
};

constexpr Kernel kTable[] = {
    {"test::less", "II>B", nullptr, less, kAll},
    {"test::less.out", "IIt", nullptr, less_out, kAll},
    {"test::plus", "II>I", nullptr, plus, kAll},
    {"test::refuse", ">I", nullptr, refuse, kAll},
    {"test::twice.out", "Tt", "v1/6;0|6;0|6;0", twice_out, kAll},
};

}  // namespace
}  // namespace orch::test

namespace orch {
extern const KernelTable kRegisteredKernels;
const KernelTable kRegisteredKernels{test::kTable};
}  // namespace orch

namespace orch::test {
namespace {

const TensorFacts kFlag{{1}, {}, ScalarType::Bool, 0, 0, 1, 0};
const TensorFacts kFloats{{4}, {}, ScalarType::Float, 0, 0, 1, 16};
const TensorFacts kDynamic{{4}, {}, ScalarType::Float, 1, 0, 1, 32};

Loaded loaded_of(const std::function<void(MethodFacts&)>& fill) {
  return {program_of([&](MethodFacts& method) {
            method.arenas = {0, 128};
            fill(method);
          }),
          kTable};
}

void check_status(const RunStatus& status, Error error, uint32_t instruction) {
  CHECK(status.error == error);
  CHECK(status.instruction == instruction);
}

TEST_CASE("a method without instructions runs") {
  const Loaded loaded = loaded_of([](MethodFacts&) {});
  REQUIRE(loaded.error == Error::Ok);
  check_status(execute(loaded.image), Error::Ok, 0);
}

TEST_CASE("a move copies a value of any kind") {
  const Loaded loaded = loaded_of([](MethodFacts& m) {
    m.move(m.integer(5), m.integer(6));
    m.move(m.number(0.5), m.number(0));
    m.move(m.boolean(true), m.boolean(false));
    m.move(m.string("ab"), m.string("c"));
    m.move(m.none(), m.none());
    m.move(m.tensor(kFloats), m.tensor({{2}, {}, ScalarType::Float, 1, 0, 1}));
  });
  REQUIRE(loaded.error == Error::Ok);
  check_status(execute(loaded.image), Error::Ok, 6);
  CHECK(loaded.value(1).to_int() == 5);
  CHECK(loaded.value(3).to_double() == 0.5);
  CHECK(loaded.value(5).to_bool());
  CHECK(loaded.value(7).list().count == 2);
  CHECK(loaded.value(9).is_none());
  // The memory goes with a tensor.
  CHECK(loaded.value(11).tensor().memory == loaded.value(10).tensor().memory);
  CHECK(loaded.value(11).tensor().size(0) == 4);
}

TEST_CASE("a jump is taken if its condition is false") {
  for (const bool as_tensor : {false, true}) {
    for (const bool flag : {false, true}) {
      const Loaded loaded = loaded_of([&](MethodFacts& m) {
        const int32_t condition = as_tensor ? m.tensor(kFlag) : m.boolean(flag);
        const int32_t result = m.integer(0);
        m.jump_unless(condition, 2);
        m.move(m.integer(1), result);
      });
      REQUIRE(loaded.error == Error::Ok);
      if (as_tensor) {
        // Every byte but 0 is true.
        *loaded.value(0).tensor().mutable_data<uint8_t>() = flag ? 2 : 0;
      }
      CAPTURE(as_tensor);
      CAPTURE(flag);
      check_status(execute(loaded.image), Error::Ok, 2);
      CHECK(loaded.value(1).to_int() == (flag ? 1 : 0));
    }
  }
}

TEST_CASE("a condition that a move made empty is false") {
  const Loaded loaded = loaded_of([](MethodFacts& m) {
    const int32_t condition = m.tensor({{1}, {}, ScalarType::Bool, 1, 0, 1});
    const int32_t empty = m.tensor({{0}, {}, ScalarType::Bool, 0, 0, 1, 128});
    const int32_t result = m.integer(0);
    m.move(empty, condition);
    m.jump_unless(condition, 3);
    m.move(m.integer(1), result);
  });
  REQUIRE(loaded.error == Error::Ok);
  loaded.arenas.fill(1);
  check_status(execute(loaded.image), Error::Ok, 3);
  CHECK(loaded.value(2).to_int() == 0);
}

/// i += 1 until not i < count; 3 instructions per turn.
Loaded counting_loop(int64_t count, bool as_tensor) {
  return loaded_of([&](MethodFacts& m) {
    const int32_t i = m.integer(0);
    const int32_t one = m.integer(1);
    const int32_t end = m.integer(count);
    const int32_t stay = as_tensor ? m.tensor(kFlag) : m.boolean(false);
    const int32_t never = m.boolean(false);
    m.call("test::plus", {i, one, i});
    if (as_tensor) {
      m.call("test::less.out", {i, end, stay, stay});
    } else {
      m.call("test::less", {i, end, stay});
    }
    m.jump_unless(stay, 4);
    m.jump_unless(never, 0);
  });
}

TEST_CASE("a loop runs until its condition is false, in every run") {
  for (const bool as_tensor : {false, true}) {
    const Loaded loaded = counting_loop(10, as_tensor);
    REQUIRE(loaded.error == Error::Ok);
    check_status(execute(loaded.image), Error::Ok, 4);
    CHECK(loaded.value(0).to_int() == 10);
    // Values stay as they are: the loop ends at once.
    check_status(execute(loaded.image), Error::Ok, 4);
    CHECK(loaded.value(0).to_int() == 11);
  }
}

TEST_CASE("the limit is the number of instructions that may run") {
  constexpr uint32_t kNeeded = 10 * 4 - 1;
  for (const uint32_t limit : {0U, kNeeded, kNeeded + 1, UINT32_MAX}) {
    const Loaded loaded = counting_loop(10, false);
    REQUIRE(loaded.error == Error::Ok);
    CAPTURE(limit);
    check_status(execute(loaded.image, limit), Error::Ok, 4);
  }
  for (const uint32_t limit : {1U, 2U, 3U, 4U, kNeeded - 1}) {
    const Loaded loaded = counting_loop(10, false);
    REQUIRE(loaded.error == Error::Ok);
    CAPTURE(limit);
    check_status(execute(loaded.image, limit), Error::InstructionLimit,
                 limit % 4);
  }
  const Loaded forever =
      loaded_of([](MethodFacts& m) { m.jump_unless(m.boolean(false), 0); });
  REQUIRE(forever.error == Error::Ok);
  check_status(execute(forever.image, 1000000), Error::InstructionLimit, 0);
}

TEST_CASE("a run ends at the first kernel that fails") {
  const Loaded loaded = loaded_of([](MethodFacts& m) {
    const int32_t result = m.integer(0);
    const int32_t one = m.integer(1);
    m.move(one, result);
    m.call("test::refuse", {result});
    m.move(m.integer(2), result);
  });
  REQUIRE(loaded.error == Error::Ok);
  check_status(execute(loaded.image), Error::NotSupported, 1);
  CHECK(loaded.value(0).to_int() == 1);
}

TEST_CASE("a tensor that is freed stays where it is") {
  const Loaded loaded = loaded_of([](MethodFacts& m) {
    const int32_t tensor = m.tensor(kFloats);
    m.free(tensor);
    m.call("test::twice.out", {tensor, m.tensor(kDynamic), 1});
  });
  REQUIRE(loaded.error == Error::Ok);
  loaded.value(0).tensor().mutable_data<float>()[3] = 4;
  check_status(execute(loaded.image), Error::Ok, 2);
  CHECK(loaded.value(1).tensor().data<float>()[3] == 8);
}

TEST_CASE("kernels notice that a move made an input of their out") {
  // With the 8 channels that the out gets, the input would need more weights.
  const Loaded loaded(
      program_of([](MethodFacts& m) {
        m.arenas = {0, 8 * 4 * 4, 8 * 4};
        const TensorFacts image{{1, 8, 2, 2}, {}, ScalarType::Float, 1, 0, 1};
        const int32_t out = m.tensor(image);
        const int32_t copy = m.tensor(image);
        const int32_t weight =
            m.tensor({{8, 1, 1, 1}, {}, ScalarType::Float, 0, 0, 2});
        const int32_t one = m.integer(1);
        const int32_t ones = m.ints({one, one});
        const int32_t zero = m.integer(0);
        const int32_t zeros = m.ints({zero, zero});
        m.move(out, copy);
        m.call("aten::convolution.out",
               {copy, weight, m.none(), ones, zeros, ones, m.boolean(false),
                zeros, one, out, out});
      }),
      kConvolution);
  REQUIRE(loaded.error == Error::Ok);
  const int32_t one_channel[] = {1, 1, 2, 2};
  REQUIRE(resize(loaded.value(0).tensor(), one_channel) == Error::Ok);
  loaded.arenas.fill(0);
  check_status(execute(loaded.image), Error::InvalidArgument, 1);
}

// model.h

/// Two methods, each with memory of its own: "twice" of dynamic floats, with a
/// state that it doubles as well, and "refused", which cannot be loaded.
class Product {
 public:
  Product() {
    ProgramFacts facts;
    MethodFacts twice("twice");
    twice.arenas = {0, 64};
    twice.inputs = {twice.tensor({{4}, {}, ScalarType::Float, 1, 0, 1, 0})};
    twice.outputs = {twice.tensor({{4}, {}, ScalarType::Float, 1, 0, 1, 16})};
    const int32_t state =
        twice.tensor({{1}, {}, ScalarType::Float, 0, 1, 1, 32});
    twice.outputs.push_back(state);
    twice.call("test::twice.out", {0, 1, 1});
    twice.call("test::twice.out", {state, state, state});
    MethodFacts refused("refused");
    refused.call("test::nothing", {refused.integer(1)});
    facts.methods = {refused, twice};
    facts.data = bytes_of(1.5F);
    facts.mutable_state = {0, 0};
    file_ = facts.file();
    arenas_ = Arenas({64});
    state_ = Block(1024);
  }

  ModelMethod method(uint32_t index) {
    return {"model",         "method",      file_.bytes(),
            index,           state_.span(), arenas_.spans(),
            &loaded_[index], nullptr,       load_linked};
  }

 private:
  Block file_;
  Arenas arenas_;
  Block state_;
  LoadedMethod loaded_[2] = {};
};

TEST_CASE("a method is loaded once, with its initial state") {
  Product product;
  const ModelMethod method = product.method(1);
  CHECK(method.loaded->state_used == 0);
  REQUIRE(prepare(method) == Error::Ok);
  CHECK(method.loaded->state_used ==
        3 * sizeof(Value) + 2 * sizeof(Instruction) + 4 * sizeof(int32_t));
  float state = 0;
  for (const float expected : {3.0F, 6.0F}) {
    CHECK(prepare(method) == Error::Ok);  // keeps the state
    CHECK(execute(method.loaded->image).error == Error::Ok);
    CHECK(get_output(method, 1, &state, sizeof state, nullptr) == Error::Ok);
    CHECK(state == expected);
  }
  unload(method);
  REQUIRE(prepare(method) == Error::Ok);
  CHECK(get_output(method, 1, &state, sizeof state, nullptr) == Error::Ok);
  CHECK(state == 1.5F);
}

TEST_CASE("a prelinked method starts with its initial bytes, once") {
  Value values[1];
  int32_t sizes[2] = {};
  float state = 0;
  constexpr int32_t kSizes[2] = {8, 2};
  constexpr float kState = 1.5F;
  const Value first[1] = {Value(Scalar{Tag::Int, {7, 0}})};
  const InitialBytes initial[] = {{sizes, kSizes, sizeof sizes},
                                  {values, first, sizeof values},
                                  {&state, &kState, sizeof state}};
  constexpr int32_t kPorts[1] = {0};
  const PrelinkedMethod prelinked = {{{}, {values}, {kPorts}, {kPorts}},
                                     {initial},
                                     sizeof values + sizeof sizes};
  LoadedMethod loaded;
  const ModelMethod method = {
      "model", "method", {}, 0, {}, {}, &loaded, &prelinked, start_prelinked};
  REQUIRE(prepare(method) == Error::Ok);
  CHECK(loaded.state_used == sizeof values + sizeof sizes);
  CHECK(input(method, 0).to_int() == 7);
  CHECK(sizes[1] == 2);
  CHECK(state == 1.5F);
  state = 2;
  input(method, 0).set_int(8);
  REQUIRE(prepare(method) == Error::Ok);  // keeps the state
  CHECK(state == 2);
  CHECK(output(method, 0).to_int() == 8);
  unload(method);
  REQUIRE(prepare(method) == Error::Ok);
  CHECK(state == 1.5F);
  CHECK(output(method, 0).to_int() == 7);
}

TEST_CASE("a method that cannot be loaded says so every time") {
  Product product;
  const ModelMethod method = product.method(0);
  CHECK(prepare(method) == Error::OperatorMissing);
  CHECK(prepare(method) == Error::OperatorMissing);
  CHECK(method.loaded->state_used == 0);
  ModelMethod missing = product.method(1);
  missing.method_index = 2;
  CHECK(prepare(missing) == Error::NotFound);
  ModelMethod damaged = product.method(1);
  damaged.program = {damaged.program.data(), 7};
  CHECK(prepare(damaged) == Error::InvalidProgram);
}

TEST_CASE("a program of nothing that takes a place is ready") {
  // Found by fuzzing: it uses no state, and passed for not loaded, so that the
  // next call loaded the linked program again.
  ProgramFacts facts = empty_program();
  facts.methods[0].name = "forward";
  const Block file = facts.file();
  Block state(64);
  LoadedMethod loaded = {};
  const ModelMethod method = {"", "forward", {},      0,          state.span(),
                              {}, &loaded,   nullptr, load_linked};
  REQUIRE(replace(method, file.bytes(), {}, {}, {}) == Error::Ok);
  CHECK(loaded.state_used != 0);
  // The linked program is not there: to load it would fail.
  CHECK(prepare(method) == Error::Ok);
  CHECK(execute(loaded.image).error == Error::Ok);
}

TEST_CASE("what is copied may lie in an arena") {
  Product product;
  const ModelMethod method = product.method(1);
  REQUIRE(prepare(method) == Error::Ok);
  const int32_t four[] = {4};
  float* const at = input(method, 0).tensor().mutable_data<float>();
  for (int i = 0; i < 8; ++i) at[i] = static_cast<float>(i);
  // As an output of another method does where arenas overlap.
  REQUIRE(set_input(method, 0, at + 1, four) == Error::Ok);
  CHECK(at[0] == 1);
  CHECK(at[3] == 4);
  float* const result = output(method, 0).tensor().mutable_data<float>();
  REQUIRE(result == at + 4);
  for (int i = 0; i < 4; ++i) result[i] = static_cast<float>(i);
  REQUIRE(get_output(method, 0, result + 1, 4 * sizeof(float), nullptr) ==
          Error::Ok);
  CHECK(result[1] == 0);
  CHECK(result[4] == 3);
  REQUIRE(read_tensor(output(method, 0).tensor(), result - 1, 4 * sizeof(float),
                      nullptr) == Error::Ok);
  CHECK(result[-1] == 0);
  REQUIRE(write_tensor(input(method, 0).tensor(), at + 1, four) == Error::Ok);
  CHECK(at[0] == 2);
}

TEST_CASE("inputs and outputs are copied with their sizes") {
  Product product;
  const ModelMethod method = product.method(1);
  REQUIRE(prepare(method) == Error::Ok);
  const float data[] = {1, 2, 3, 4, 5};
  const int32_t three[] = {3};
  REQUIRE(set_input(method, 0, data, three) == Error::Ok);
  REQUIRE(execute(method.loaded->image).error == Error::Ok);
  float out[4] = {-1, -1, -1, -1};
  int32_t sizes[1] = {-1};
  CHECK(get_output(method, 0, out, 3 * sizeof(float), sizes) == Error::Ok);
  CHECK(sizes[0] == 3);
  CHECK(out[0] == 2);
  CHECK(out[2] == 6);
  CHECK(out[3] == -1);
  CHECK(get_output(method, 0, out, 3 * sizeof(float) - 1, sizes) ==
        Error::ShapeTooLarge);

  const int32_t five[] = {5};
  const int32_t negative[] = {-1};
  const int32_t matrix[] = {2, 2};
  const int32_t none[] = {0};
  CHECK(set_input(method, 0, data, five) == Error::ShapeTooLarge);
  CHECK(set_input(method, 0, data, negative) == Error::InvalidArgument);
  CHECK(set_input(method, 0, data, matrix) == Error::InvalidArgument);
  CHECK(set_input(method, 0, data, {}) == Error::InvalidArgument);
  CHECK(input(method, 0).tensor().size(0) == 3);
  CHECK(set_input(method, 0, nullptr, none) == Error::Ok);
  CHECK(execute(method.loaded->image).error == Error::Ok);
  CHECK(get_output(method, 0, nullptr, 0, sizes) == Error::Ok);
  CHECK(sizes[0] == 0);
}

}  // namespace
}  // namespace orch::test
