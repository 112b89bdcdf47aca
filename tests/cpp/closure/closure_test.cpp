// Kernels built for the narrowest selections their declarations allow: within
// the selection they compute what they should, outside they say that it is not
// selected. A kernel that needs a dtype inside which it does not declare gives
// itself away here.
//
// ORCH_REFERENCE names the file of recorded calls.
#include <cstdlib>
#include <map>
#include <string>

#include "closure/hand_made.h"
#include "closure/narrow.h"
#include "support/reference.h"

namespace orch::test {
namespace {

class Closure {
 public:
  void check(ReferenceCall& call) {
    for (const Narrow& kernel : kNarrow) {
      if (call.name == kernel.name) check(call, kernel);
    }
  }

  /// Dtypes of the deciding arguments of the calls that a kernel has run.
  DtypeSet ran(const Narrow& kernel) { return ran_[&kernel]; }

 private:
  void check(ReferenceCall& call, const Narrow& kernel) {
    DtypeSet dtypes;
    for (size_t i = 0; i < call.argument_count(); ++i) {
      if ((kernel.deciding >> i & 1U) != 0) dtypes = dtypes | call.dtypes(i);
    }
    const bool inside = (dtypes.bits & ~kernel.selected.bits) == 0;
    const bool outside = (dtypes.bits & ~kernel.instantiated.bits) != 0;
    CAPTURE(call.name);
    CAPTURE(dtypes.bits);
    CAPTURE(kernel.selected.bits);
    const Error error = call.run(kernel.function);
    const std::string found = to_string(error);
    if (inside) CHECK(found == "Ok");
    if (outside) CHECK(found == "DtypeNotSelected");
    if (error == Error::Ok) {
      CHECK(call.right_result());
      for (size_t i = 0; i < call.outs().size(); ++i) {
        CHECK(call.difference(i, worst_) == "");
      }
    } else {
      CHECK(found == "DtypeNotSelected");
      CHECK(call.unwritten());
    }
    if (inside) ran_[&kernel] = ran_[&kernel] | dtypes;
  }

  std::map<const Narrow*, DtypeSet> ran_;
  Worst worst_;
};

TEST_CASE("a kernel has all it needs for what was selected, and no more") {
  Closure closure;
  const char* const path = std::getenv("ORCH_REFERENCE");
  REQUIRE_MESSAGE(path != nullptr, "ORCH_REFERENCE is not set");
  ReferenceReader reader(path);
  while (reader.left() > 0) {
    ReferenceCall call = reader.next();
    closure.check(call);
  }
  for (ReferenceCall& call : hand_made_calls()) closure.check(call);
  for (const Narrow& kernel : kNarrow) {
    const std::string name = kernel.name;
    CAPTURE(name);
    CAPTURE(kernel.asked.bits);
    // Else it was compiled and never run: add a call to hand_made.cpp.
    CHECK((kernel.asked.bits & ~closure.ran(kernel).bits) == 0);
  }
  CHECK(kNarrow.size() > 0);
}

}  // namespace
}  // namespace orch::test
