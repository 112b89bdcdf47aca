// Methods that share state are made ready together.
#include "orch/together.h"

#include <doctest/doctest.h>

#include "support/call.h"

namespace orch::test {
namespace {

float state = 0;
Error second = Error::Ok;

/// Brings the initial state along, as loading does.
Error start(const ModelMethod& method) {
  state = 1;
  if (method.method_index == 1 && second != Error::Ok) return second;
  method.loaded->state_used = 1;
  return Error::Ok;
}

struct Pair {
  LoadedMethod loaded[2] = {};
  ModelMethod methods[2] = {
      {"", "a", {}, 0, {}, {}, &loaded[0], nullptr, start},
      {"", "b", {}, 1, {}, {}, &loaded[1], nullptr, start},
  };
  const ModelMethod* all[2] = {&methods[0], &methods[1]};

  Error call(int index) {
    if (loaded[index].state_used != 0) return Error::Ok;
    return start_together(methods[index], all, start);
  }
};

TEST_CASE("state begins once, whichever method is first") {
  for (const int first : {0, 1}) {
    Pair pair;
    REQUIRE(pair.call(first) == Error::Ok);
    CHECK(state == 1);
    state = 5;
    REQUIRE(pair.call(1 - first) == Error::Ok);
    CHECK(state == 5);
    unload(pair.methods[first]);
    REQUIRE(pair.call(first) == Error::Ok);
    CHECK(state == 1);
  }
}

TEST_CASE("a method that cannot be loaded does not keep others from it") {
  Pair pair;
  second = Error::OperatorMissing;
  CHECK(pair.call(0) == Error::Ok);
  state = 5;
  CHECK(pair.call(0) == Error::Ok);
  CHECK(state == 5);
  CHECK(pair.call(1) == Error::OperatorMissing);
  // The attempt brought the initial state: the other begins with it, too.
  CHECK(pair.loaded[0].state_used == 0);
  CHECK(pair.call(0) == Error::Ok);
  CHECK(state == 1);
  second = Error::Ok;
}

}  // namespace
}  // namespace orch::test
