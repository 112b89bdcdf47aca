// Writes what kernels give for calls in a file, for tests in other languages.
//
// ORCH_CALLS names the file, in the format of tests/data/kernels; ORCH_RECORD
// where to write. Per call: u8, whether the kernel did not fail; then the
// memory of its outputs, one after the other; i64 bits of the number that it
// returns, if it does. Without the variables nothing is done.
#include <cstdio>
#include <cstdlib>

#include "support/operators.h"
#include "support/reference.h"

namespace orch::test {
namespace {

TEST_CASE("what kernels give is recorded") {
  const char* const path = std::getenv("ORCH_CALLS");
  const char* const to = std::getenv("ORCH_RECORD");
  if (path == nullptr || to == nullptr) return;
  std::map<std::string, KernelFn> table = operators();
  table.merge(int8_operators());
  table.merge(number_operators());
  std::FILE* const file = std::fopen(to, "wb");
  REQUIRE(file != nullptr);
  ReferenceReader reader(path);
  while (reader.left() > 0) {
    ReferenceCall call = reader.next();
    REQUIRE(table.count(call.name) == 1);
    const bool done = call.run(table.at(call.name)) == Error::Ok;
    std::fputc(done ? 1 : 0, file);
    for (const TestTensor& out : call.outs()) {
      std::fwrite(out.data(), 1, out.bytes(), file);
    }
    if (const Value* const number = call.returned()) {
      const int64_t bits = number->scalar().bits();
      std::fwrite(&bits, 1, sizeof bits, file);
    }
  }
  CHECK(reader.at_end());
  CHECK(std::fclose(file) == 0);
}

}  // namespace
}  // namespace orch::test
