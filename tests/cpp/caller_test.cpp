// Inputs and outputs in memory of the caller: loading, and giving that memory.
#include "orch/caller.h"

#include <doctest/doctest.h>

#include <functional>

#include "support/load.h"

namespace orch::test {
namespace {

Error copy_floats(const Args& args) {
  const Tensor& from = args.tensor(0);
  const Tensor& to = args.tensor(1);
  memcpy(to.memory, from.memory, to.nbytes());
  return Error::Ok;
}

const Kernel kTable[] = {{"test::copy.out", "Tt", nullptr, copy_floats, kAll}};
const KernelTable kKernels{kTable};

constexpr float kSome[4] = {1, 2, 3, 4};
const TensorFacts kCallers{{4}};

/// Copies value 0 to value 1, both of the caller, after `change`.
ProgramFacts copies(const std::function<void(MethodFacts&)>& change = {}) {
  return with_arena([&](MethodFacts& method) {
    method.inputs = {method.tensor(kCallers)};
    method.outputs = {method.tensor(kCallers)};
    method.call("test::copy.out", {0, 1});
    if (change) change(method);
  });
}

TEST_CASE("kernels get the caller's own pointers") {
  const Loaded loaded(copies(), kKernels);
  REQUIRE(loaded.error == Error::Ok);
  LoadedMethod made = {};
  made.image = loaded.image;
  made.state_used = 1;
  const ModelMethod method = {"", "",    {},      0,          {},
                              {}, &made, nullptr, load_linked};
  CHECK(check_memory(method) == Error::MemoryNotSet);
  float out[4] = {};
  REQUIRE(set_memory(input(method, 0), kSome) == Error::Ok);
  CHECK(check_memory(method) == Error::MemoryNotSet);
  REQUIRE(set_memory(output(method, 0), out) == Error::Ok);
  CHECK(input(method, 0).tensor().memory == kSome);
  CHECK(check_memory(method) == Error::Ok);
  CHECK(execute(made.image).error == Error::Ok);
  CHECK(out[3] == 4);

  const char* const odd = reinterpret_cast<const char*>(kSome) + 2;
  CHECK(set_memory(input(method, 0), odd) == Error::Misaligned);
  CHECK(check_memory(method) == Error::Ok);  // as it was
  REQUIRE(set_memory(input(method, 0), nullptr) == Error::Ok);
  CHECK(check_memory(method) == Error::MemoryNotSet);
  REQUIRE(set_memory(input(method, 0), kSome) == Error::Ok);
  clear_memory(method);
  CHECK(output(method, 0).tensor().memory == nullptr);
  CHECK(check_memory(method) == Error::MemoryNotSet);
}

TEST_CASE("what the caller's memory cannot be used for is refused") {
  struct Case {
    std::function<void(MethodFacts&)> change;
    Error error;
  };
  const Case cases[] = {
      {[](MethodFacts&) {}, Error::Ok},
      // Neither input nor output.
      {[](MethodFacts& m) { m.tensor(kCallers); }, Error::UnsupportedProgram},
      {[](MethodFacts& m) { m.inputs = {}; }, Error::UnsupportedProgram},
      {[](MethodFacts& m) { m.tensor({{0}}); }, Error::Ok},  // needs none
      // The caller's inputs are constant.
      {[](MethodFacts& m) {
         m.call("test::copy.out", {1, 0});
       },
       Error::InvalidProgram},
      {[](MethodFacts& m) { m.inputs.push_back(1); }, Error::InvalidProgram},
      // Neither replaced, nor kept beyond the run.
      {[](MethodFacts& m) { m.move(m.tensor(kPlanned), 1); },
       Error::UnsupportedProgram},
      {[](MethodFacts& m) { m.move(1, m.tensor(kPlanned)); },
       Error::UnsupportedProgram},
      {[](MethodFacts& m) { m.move(0, m.tensor(kPlanned)); },
       Error::UnsupportedProgram},
      // The input as it is, and an output twice.
      {[](MethodFacts& m) {
         m.outputs = {0, 1, 1};
       },
       Error::Ok},
      {[](MethodFacts& m) { m.inputs = {9}; }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.outputs = {-1}; }, Error::InvalidProgram},
  };
  for (const Case& item : cases) {
    CAPTURE(&item - cases);
    CHECK(error_of(copies(item.change), kKernels) == item.error);
  }
}

TEST_CASE("another program leaves the same to the caller") {
  const ProgramFacts facts = copies();
  const int32_t sizes[] = {4};
  const uint8_t order[] = {0};
  const auto port = [&](uint8_t flags) {
    return Port{Tag::Tensor, ScalarType::Float, flags, 1, sizes, order};
  };
  const auto replaced = [&](const ProgramFacts& by, uint8_t in,
                            std::vector<uint8_t> out) {
    const Block file = by.file();
    const Block state(1024);
    const Arenas arenas({64});
    LoadedMethod made = {};
    const ModelMethod method = {"",    "forward",    {},
                                0,     state.span(), arenas.spans(),
                                &made, nullptr,      load_linked};
    const Port inputs[] = {port(in)};
    std::vector<Port> outputs;
    for (const uint8_t flags : out) outputs.push_back(port(flags));
    return replace(method, file.bytes(), inputs,
                   {outputs.data(), outputs.size()}, kKernels);
  };
  constexpr uint8_t kGiven = Tensor::kCaller;
  CHECK(replaced(facts, kGiven, {kGiven}) == Error::Ok);
  CHECK(replaced(facts, 0, {kGiven}) == Error::InvalidArgument);
  CHECK(replaced(facts, kGiven, {0}) == Error::InvalidArgument);
  // Read where they are: the input, and an output for the second time.
  const ProgramFacts same = copies([](MethodFacts& m) {
    m.outputs = {1, 0, 1};
  });
  CHECK(replaced(same, kGiven, {kGiven, 0, 0}) == Error::Ok);
  CHECK(replaced(same, kGiven, {kGiven, kGiven, 0}) == Error::InvalidArgument);
  CHECK(replaced(same, kGiven, {kGiven, 0, kGiven}) == Error::InvalidArgument);
}

TEST_CASE("sizes of an output are returned without a copy") {
  const Loaded loaded(with_arena([](MethodFacts& method) {
                        TensorFacts facts = kCallers;
                        facts.dynamism = 1;
                        method.outputs = {method.tensor(facts)};
                      }),
                      {});
  REQUIRE(loaded.error == Error::Ok);
  LoadedMethod made = {};
  made.image = loaded.image;
  const ModelMethod method = {"", "",    {},      0,          {},
                              {}, &made, nullptr, load_linked};
  const int32_t three[] = {3};
  REQUIRE(resize(output(method, 0).tensor(), three) == Error::Ok);
  int32_t sizes[2] = {-1, -1};
  get_sizes(method, 0, sizes);
  CHECK(sizes[0] == 3);
  CHECK(sizes[1] == -1);
}

}  // namespace
}  // namespace orch::test
