// Calls kernels whose arguments and results are all numbers.
//
// Per line of input: an operator, then its arguments and its result before the
// call, each a letter (`I`, `D`, `B`) with the 64 bits of the value as an
// unsigned number. Per line of output: the error, and the result after the
// call.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "orch/model.h"

namespace orch::test {
namespace {

constexpr char kLetters[] = "??IDB";  // by tag

Value value_of(char letter, uint64_t bits) {
  Value value;
  double number;
  std::memcpy(&number, &bits, sizeof number);
  if (letter == 'I') value.set_int(static_cast<int64_t>(bits));
  if (letter == 'D') value.set_double(number);
  if (letter == 'B') value.set_bool(bits != 0);
  return value;
}

/// The kernel of that name; the first one, whatever its key.
KernelFn kernel_of(const char* name) {
  for (const Kernel& kernel : kRegisteredKernels) {
    if (std::strcmp(kernel.name, name) == 0) return kernel.function;
  }
  return nullptr;
}

int run() {
  char line[512];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::vector<Value> values;
    std::vector<int32_t> indices;
    const KernelFn kernel = kernel_of(std::strtok(line, " \n"));
    while (const char* const word = std::strtok(nullptr, " \n")) {
      uint64_t bits = 0;
      if (std::sscanf(word + 1, "%" SCNu64, &bits) != 1) return 1;
      indices.push_back(static_cast<int32_t>(values.size()));
      values.push_back(value_of(word[0], bits));
    }
    if (kernel == nullptr || values.empty()) return 1;
    const Args args(values.data(), indices.data(),
                    static_cast<uint32_t>(indices.size()));
    const Error error = kernel(args);
    const Scalar& result = values.back().scalar();
    std::printf("%s %c%" PRIu64 "\n", to_string(error),
                kLetters[static_cast<size_t>(result.tag)],
                static_cast<uint64_t>(result.bits()));
  }
  return 0;
}

}  // namespace
}  // namespace orch::test

int main() { return orch::test::run(); }
