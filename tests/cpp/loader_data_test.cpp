// Constants that a program leaves outside, found by their names.
#include <doctest/doctest.h>

#include <functional>

#include "support/load.h"

namespace orch::test {
namespace {

alignas(kProgramAlignment) const float kWeights[4] = {1, 2, 3, 4};
const ExternalData kData[] = {
    {"layer.bias", reinterpret_cast<const uint8_t*>(kWeights), 4,
     ScalarType::Float},
    {"layer.weight", reinterpret_cast<const uint8_t*>(kWeights), 16,
     ScalarType::Float},
};

TensorFacts outside(const std::string& name) {
  TensorFacts facts{{4}};
  facts.location = 1;
  facts.name = name;
  return facts;
}

/// Loads a method with this one tensor; `memory` is where it lies then.
Error load(const TensorFacts& facts, const void** memory = nullptr,
           Span<const ExternalData> data = kData) {
  const ProgramFacts program =
      with_arena([&](MethodFacts& method) { method.tensor(facts); });
  const Block file = program.file();
  const Arenas arenas({64});
  const Block state(256);
  Program opened;
  ORCH_TRY(Program::open(file.bytes(), opened));
  MethodImage image;
  size_t used = 0;
  const Error error = load_method(
      opened, 0, {}, {state.span(), arenas.spans(), data}, image, used);
  if (error == Error::Ok && memory != nullptr) {
    const Tensor& tensor = image.values[0].tensor();
    *memory = tensor.memory;
    CHECK((tensor.flags & Tensor::kReadOnly) != 0);
  }
  return error;
}

TEST_CASE("a constant outside is used where it lies") {
  const void* memory = nullptr;
  CHECK(load(outside("layer.weight"), &memory) == Error::Ok);
  CHECK(memory == kWeights);
}

TEST_CASE("names are compared whole") {
  for (const char* name :
       {"layer.weigh", "layer.weights", "", "Layer.weight"}) {
    CAPTURE(name);
    CHECK(load(outside(name)) == Error::UnsupportedProgram);
  }
  CHECK(load(outside(std::string("layer.weight\0", 13))) ==
        Error::UnsupportedProgram);
  CHECK(load(outside("layer.weight"), nullptr, {}) ==
        Error::UnsupportedProgram);
}

TEST_CASE("what does not fit the data is refused") {
  struct Case {
    std::function<void(TensorFacts&)> change;
    Error error;
  };
  const Case cases[] = {
      {[](TensorFacts& t) {
         t.sizes = {2, 2};
       },
       Error::Ok},  // the same bytes
      {[](TensorFacts& t) { t.sizes = {5}; }, Error::InvalidProgram},
      {[](TensorFacts& t) { t.sizes = {3}; }, Error::InvalidProgram},
      {[](TensorFacts& t) { t.name = "layer.bias"; }, Error::InvalidProgram},
      {[](TensorFacts& t) { t.dtype = ScalarType::Int; },
       Error::InvalidProgram},
      {[](TensorFacts& t) { t.memory_id = 1; }, Error::UnsupportedProgram},
      {[](TensorFacts& t) { t.location = 2; }, Error::InvalidProgram},
      {[](TensorFacts& t) { t.location = -1; }, Error::InvalidProgram},
  };
  for (const Case& item : cases) {
    CAPTURE(&item - cases);
    TensorFacts facts = outside("layer.weight");
    item.change(facts);
    CHECK(load(facts) == item.error);
  }
}

}  // namespace
}  // namespace orch::test
