// Kernels that may write over an input give what they give beside it.
//
// ORCH_IN_PLACE has what the kernel lists say: a line for each operator, its
// name and the arguments that may lie where the output does. The calls are
// those of ORCH_REFERENCE and ORCH_CORTEX_M.
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/operators.h"
#include "support/reference.h"

namespace orch::test {
namespace {

constexpr size_t kMostInputs = 2;

KernelFn kernel_of(const std::string& name) {
  static const std::map<std::string, KernelFn> known = all_kernels();
  CAPTURE(name);
  REQUIRE(known.count(name) == 1);
  return known.at(name);
}

/// Positions of the inputs that an operator may write over.
std::map<std::string, std::vector<size_t>> declared() {
  const char* const text = std::getenv("ORCH_IN_PLACE");
  REQUIRE_MESSAGE(text != nullptr, "ORCH_IN_PLACE is not set");
  std::map<std::string, std::vector<size_t>> inputs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (size_t input; words >> input;) inputs[name].push_back(input);
    REQUIRE(inputs[name].size() <= kMostInputs);
  }
  return inputs;
}

TEST_CASE("kernels give the same in the place of an input") {
  const std::map<std::string, std::vector<size_t>> inputs = declared();
  REQUIRE(!inputs.empty());
  std::map<std::pair<std::string, size_t>, int> calls;
  for (const char* variable : {"ORCH_REFERENCE", "ORCH_CORTEX_M"}) {
    const char* const path = std::getenv(variable);
    REQUIRE(path != nullptr);
    for (size_t which = 0; which < kMostInputs; ++which) {
      ReferenceReader reader(path);
      for (uint32_t number = 0; reader.left() > 0; ++number) {
        ReferenceCall call = reader.next();
        const auto found = inputs.find(call.name);
        if (found == inputs.end() || which >= found->second.size()) continue;
        const size_t input = found->second[which];
        CAPTURE(number);
        CAPTURE(call.name);
        CAPTURE(input);
        const KernelFn kernel = kernel_of(call.name);
        REQUIRE(call.run(kernel) == Error::Ok);
        const TestTensor& out = call.outs()[0];
        const uint8_t* const over = call.write_over(input);
        if (over == nullptr || out.bytes() == 0) continue;
        ++calls[{call.name, input}];
        REQUIRE(call.run(kernel) == Error::Ok);
        CHECK(std::memcmp(over, out.data(), out.bytes()) == 0);
      }
    }
  }
  for (const auto& row : inputs) {
    const auto& name = row.first;
    const auto& known = row.second;
    for (const size_t input : known) {
      CAPTURE(name);
      CAPTURE(input);
      CHECK(calls[{name, input}] > 0);
    }
  }
}

}  // namespace
}  // namespace orch::test
