// Every call of tests/data/kernels, made by PyTorch
// and ExecuTorch.
//
// ORCH_REFERENCE names the file. ORCH_REPORT=1 prints the largest error of each
// operator and dtype: in units of the last place of the result, which is much
// where a sum cancels out, and as a share of the tolerance.
#include "support/reference.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "support/operators.h"

namespace orch::test {
namespace {

/// Operators whose results no file can have: they are undefined, random, or
/// depend on what the output held.
const std::set<std::string> kUnrecorded = {
    "aten::empty.out", "aten::index_put_", "aten::rand.out", "aten::randn.out",
    "dim_order_ops::_empty_dim_order.out"};

TEST_CASE("kernels give what PyTorch gives") {
  const char* const path = std::getenv("ORCH_REFERENCE");
  REQUIRE_MESSAGE(path != nullptr, "ORCH_REFERENCE is not set");
  ReferenceReader reader(path);
  std::map<std::string, KernelFn> table = portable_kernels();
  table.merge(quantized_kernels());
  std::map<std::string, int> calls;
  std::map<std::pair<std::string, int>, Worst> worst;

  for (uint32_t number = 0; reader.left() > 0; ++number) {
    ReferenceCall call = reader.next();
    REQUIRE(table.count(call.name) == 1);
    ++calls[call.name];
    CAPTURE(number);
    CAPTURE(call.name);
    REQUIRE(call.run(table.at(call.name)) == Error::Ok);
    for (size_t i = 0; i < call.outs().size(); ++i) {
      const int dtype = static_cast<int>(call.outs()[i].dtype());
      CHECK(call.difference(i, worst[{call.name, dtype}]) == "");
    }
  }
  CHECK(reader.at_end());
  for (const auto& entry : table) {
    const std::string& name = entry.first;
    CAPTURE(name);
    CHECK((calls[name] > 0) != (kUnrecorded.count(name) == 1));
  }
  if (std::getenv("ORCH_REPORT") != nullptr) {
    for (const auto& [key, error] : worst) {
      std::printf("%s dtype %d: %.3g ulp, %.2f of the tolerance\n",
                  key.first.c_str(), key.second, error.ulps, error.share);
    }
  }
}

}  // namespace
}  // namespace orch::test
