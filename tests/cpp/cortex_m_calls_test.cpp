// Every call of tests/data/cortex_m/calls.bin, made by the semantics that NumPy
// computes there. The same calls run on boards:
// tests/qemu/test_kernel_calls.py.
//
// ORCH_CORTEX_M names the file.
#include <cstdlib>
#include <map>
#include <string>

#include "support/operators.h"
#include "support/reference.h"

namespace orch::test {
namespace {

TEST_CASE("int8 kernels give what their semantics say") {
  const char* const path = std::getenv("ORCH_CORTEX_M");
  REQUIRE_MESSAGE(path != nullptr, "ORCH_CORTEX_M is not set");
  ReferenceReader reader(path);
  const std::map<std::string, KernelFn> table = cortex_m_kernels();
  std::map<std::string, int> calls;
  for (uint32_t number = 0; reader.left() > 0; ++number) {
    ReferenceCall call = reader.next();
    REQUIRE(table.count(call.name) == 1);
    ++calls[call.name];
    CAPTURE(number);
    CAPTURE(call.name);
    REQUIRE(call.run(table.at(call.name)) == Error::Ok);
    Worst worst;
    CHECK(call.difference(0, worst) == "");
  }
  CHECK(reader.at_end());
  for (const auto& entry : table) {
    const std::string& name = entry.first;
    CAPTURE(name);
    CHECK(calls[name] > 0);
  }
}

}  // namespace
}  // namespace orch::test
