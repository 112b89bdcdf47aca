// Writes what kernels give for calls in a file, for tests in other languages.
//
// ORCH_CALLS names the file, in the format of tests/data/kernels; ORCH_RECORD
// where to write. Per call: u8, whether the kernel did not fail; then the
// memory of its outputs, one after the other; i64 bits of the number that it
// returns, if it does.
//
// ORCH_TOUCH names a file in place of ORCH_RECORD: outputs then hold the byte
// ORCH_PATTERN before the call, and after it the memory of all tensors is
// written, that of inputs as well.
//
// Without the variables nothing is done.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/operators.h"
#include "support/reference.h"

namespace orch::test {
namespace {

TEST_CASE("what kernels give is recorded") {
  const char* const path = std::getenv("ORCH_CALLS");
  const char* const to = std::getenv("ORCH_RECORD");
  if (path == nullptr || to == nullptr) return;
  const std::map<std::string, KernelFn> table = all_kernels();
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

TEST_CASE("what kernels touch is recorded") {
  const char* const path = std::getenv("ORCH_CALLS");
  const char* const to = std::getenv("ORCH_TOUCH");
  const char* const pattern = std::getenv("ORCH_PATTERN");
  if (path == nullptr || to == nullptr || pattern == nullptr) return;
  const std::map<std::string, KernelFn> table = all_kernels();
  std::FILE* const file = std::fopen(to, "wb");
  REQUIRE(file != nullptr);
  ReferenceReader reader(path);
  while (reader.left() > 0) {
    ReferenceCall call = reader.next();
    REQUIRE(table.count(call.name) == 1);
    for (const TestTensor& out : call.outs()) {
      std::memset(out.data(), std::atoi(pattern), out.bytes());
    }
    // Kernels may change the sizes.
    std::vector<size_t> sizes;
    for (const Tensor* tensor : call.tensors()) {
      sizes.push_back(tensor->nbytes());
    }
    // What lies around the tensors is checked as well.
    std::fputc(call.run(table.at(call.name)) == Error::Ok ? 1 : 0, file);
    size_t at = 0;
    for (const Tensor* tensor : call.tensors()) {
      std::fwrite(tensor->memory, 1, sizes[at++], file);
    }
  }
  CHECK(reader.at_end());
  CHECK(std::fclose(file) == 0);
}

}  // namespace
}  // namespace orch::test
