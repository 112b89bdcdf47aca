// The loader and the executor: delegates.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "orch/delegate.h"
#include "orch/loader.h"
#include "orch/method.h"
#include "orch/model.h"
#include "support/call.h"
#include "support/load.h"

namespace orch::test {
namespace {

constexpr uint32_t kStateBytes = 12;

/// What delegates were given, in order.
std::vector<std::string> events;
Error init_result = Error::Ok;
Error run_result = Error::Ok;

std::string text_of(Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error init(const DelegateHandle& handle, const CompileSpecs& specs) {
  std::string event = "init " + text_of(handle.processed);
  for (uint32_t i = 0; i < specs.count(); ++i) {
    const CompileSpec spec = specs[i];
    event += " " + std::string(spec.key.data(), spec.key.size()) + "=" +
             text_of(spec.value);
  }
  if (handle.state != nullptr) {
    auto* const bytes = static_cast<uint8_t*>(handle.state);
    CHECK(reinterpret_cast<uintptr_t>(bytes) % kDelegateStateAlignment == 0);
    for (uint32_t i = 0; i < kStateBytes; ++i) CHECK(bytes[i] == 0);
    // AddressSanitizer and the other parts notice if it is not the part's.
    std::memset(bytes, static_cast<int>('a' + events.size()), kStateBytes);
  }
  events.push_back(event);
  return init_result;
}

Error run(const DelegateHandle& handle, const Args& args) {
  std::string event = "run " + text_of(handle.processed);
  if (handle.state != nullptr) {
    const auto* const bytes = static_cast<const char*>(handle.state);
    for (uint32_t i = 1; i < kStateBytes; ++i) CHECK(bytes[i] == bytes[0]);
    event += std::string(" ") + bytes[0];
  }
  for (uint32_t i = 0; i < args.count(); ++i) {
    event += " " + std::to_string(args.integer(static_cast<int>(i)));
  }
  events.push_back(event);
  return run_result;
}

constexpr Delegate kTable[] = {{"Keeps", kStateBytes, init, run},
                               {"Keep", 0, init, run}};

void forget() {
  events.clear();
  init_result = run_result = Error::Ok;
}

const std::vector<uint8_t> kBytes = {'a', 'b', 'c', 'd'};

/// Values 0 and 1 are 7 and 8, inline data are "abcd" and "", the segment is
/// "abcd".
template <typename Fill>
ProgramFacts with_delegates(Fill fill) {
  ProgramFacts facts = program_of([&](MethodFacts& method) {
    method.integer(7);
    method.integer(8);
    fill(method);
  });
  facts.inline_data = {kBytes, {}};
  facts.data = kBytes;
  return facts;
}

using Events = std::vector<std::string>;

TEST_CASE("delegates are made ready once and run by their calls") {
  forget();
  const Loaded loaded(with_delegates([](MethodFacts& m) {
                        m.delegates = {
                            {"Keeps", 1, 0, {{"x", {'1'}}, {"y", {}}}},
                            {"Keep", 0, 0},
                            {"Keeps", 0, 1},
                        };
                        m.delegate(2, {1});
                        m.delegate(0, {0, 1, 0});
                        m.delegate(1, {1});
                        m.delegate(0, {0});
                      }),
                      {});
  REQUIRE(loaded.error == Error::Ok);
  // 2 values, 4 instructions, 3 handles, 2 states.
  CHECK(loaded.state_used == 2 * sizeof(Value) + 4 * sizeof(Instruction) +
                                 3 * sizeof(DelegateHandle) + 2 * 16);
  CHECK(events == Events{"init abcd x=1 y=", "init abcd", "init "});
  for (int i = 0; i < 2; ++i) {
    events.clear();
    CHECK(execute(loaded.image).error == Error::Ok);
    CHECK(events ==
          Events{"run  c 8", "run abcd a 7 8 7", "run abcd 8", "run abcd a 7"});
  }
  run_result = Error::NotSupported;
  const RunStatus status = execute(loaded.image);
  CHECK(status.error == Error::NotSupported);
  CHECK(status.instruction == 0);
}

TEST_CASE("one byte less than the state of the delegates is refused") {
  forget();
  const ProgramFacts facts = with_delegates([](MethodFacts& m) {
    m.delegates = {{"Keeps", 0, 0}};
    m.delegate(0, {0});
  });
  const Loaded loaded(facts, {});
  REQUIRE(loaded.error == Error::Ok);
  events.clear();
  const Block less(loaded.state_used - 1);
  MethodImage image;
  size_t used = 0;
  CHECK(load_method(loaded.program, 0, {}, {less.span(), {}}, image, used) ==
        Error::StateTooSmall);
  CHECK(used == loaded.state_used);
  CHECK(events.empty());
}

TEST_CASE("a delegate that cannot be made ready ends the load") {
  forget();
  init_result = Error::InvalidArgument;
  CHECK(error_of(with_delegates([](MethodFacts& m) {
          m.delegates = {{"Keeps", 0, 0}, {"Keep", 0, 0}};
        })) == Error::InvalidArgument);
  CHECK(events == Events{"init abcd"});
}

TEST_CASE("a method that is loaded anew has delegates that begin anew") {
  forget();
  const Block file = with_delegates([](MethodFacts& m) {
                       m.delegates = {{"Keeps", 0, 0}};
                       m.delegate(0, {0});
                     }).file();
  const Block state(2 * sizeof(Value) + sizeof(Instruction) +
                    sizeof(DelegateHandle) + 16);
  LoadedMethod loaded;
  const ModelMethod method = {"",      "forward",    file.bytes(),
                              0,       state.span(), {},
                              &loaded, nullptr,      load_linked};
  for (int i = 0; i < 2; ++i) {
    REQUIRE(prepare(method) == Error::Ok);
    REQUIRE(prepare(method) == Error::Ok);
    CHECK(execute(loaded.image).error == Error::Ok);
    unload(method);
  }
  // `init` checks that the state is zero.
  CHECK(events ==
        Events{"init abcd", "run abcd a 7", "init abcd", "run abcd c 7"});
}

TEST_CASE("what a program says of delegates is checked") {
  using Fill = std::function<void(MethodFacts&)>;
  struct Case {
    Fill fill;
    Error error;
  };
  const auto only = [](const DelegateFacts& facts) {
    return [facts](MethodFacts& m) { m.delegates = {facts}; };
  };
  const auto called = [](int32_t index, const std::vector<int32_t>& args) {
    return [index, args](MethodFacts& m) {
      m.delegates = {{"Keeps", 0, 0}, {"Keep", 0, 0}};
      m.delegate(index, args);
    };
  };
  const std::vector<int32_t> most(UINT16_MAX, 0);
  const std::vector<int32_t> too_many(UINT16_MAX + 1, 0);
  const Case cases[] = {
      {only({"Keeps", 0, 0}), Error::Ok},
      {only({"Keeps", 0, 1}), Error::Ok},
      {only({"Keeps", 1, 0}), Error::Ok},
      {only({"Keeps", 0, 2}), Error::InvalidProgram},
      {only({"Keeps", 1, 1}), Error::InvalidProgram},
      {only({"Keeps", 1, UINT32_MAX}), Error::InvalidProgram},
      {only({"Keeps", 2, 0}), Error::InvalidProgram},
      {only({"Keeps", -1, 0}), Error::InvalidProgram},
      {only({"Keeps", 0, 0, {}, false}), Error::InvalidProgram},
      {only({"Keeps", 0, 0, {{"x", {}}}, true, false}), Error::InvalidProgram},
      {only({"", 0, 0}), Error::InvalidProgram},
      {only({"Other", 0, 0}), Error::DelegateMissing},
      {only({"Kee", 0, 0}), Error::DelegateMissing},
      {only({"Keepss", 0, 0}), Error::DelegateMissing},
      {only({std::string("Keep\0", 5), 0, 0}), Error::DelegateMissing},
      {called(0, {0}), Error::Ok},
      {called(1, {1, 0}), Error::Ok},
      {called(2, {0}), Error::InvalidProgram},
      {called(-1, {0}), Error::InvalidProgram},
      {called(INT32_MIN, {0}), Error::InvalidProgram},
      {called(0, {2}), Error::InvalidProgram},
      {called(0, {0, -1}), Error::InvalidProgram},
      {called(0, {0, INT32_MAX}), Error::InvalidProgram},
      {called(0, {}), Error::InvalidProgram},
      {called(0, most), Error::Ok},
      {called(0, too_many), Error::InvalidProgram},
  };
  for (const Case& one : cases) {
    CAPTURE(&one - cases);
    forget();
    CHECK(error_of(with_delegates(one.fill)) == one.error);
    // Nothing of a program that is refused is handed on.
    CHECK(events.empty() == (one.error != Error::Ok));
  }
}

TEST_CASE("segments of delegates lie inside the file") {
  struct Case {
    uint64_t offset;
    int64_t size;
    Error error;
  };
  const Case cases[] = {
      {0, 4, Error::Ok},
      {1, 3, Error::Ok},
      {4, 0, Error::Ok},
      {0, 5, Error::InvalidProgram},
      {1, 4, Error::InvalidProgram},
      {5, 0, Error::InvalidProgram},
      {UINT64_MAX, 1, Error::InvalidProgram},
      {1, INT64_MAX, Error::InvalidProgram},
  };
  for (const Case& one : cases) {
    CAPTURE(&one - cases);
    forget();
    ProgramFacts facts = with_delegates([](MethodFacts& m) {
      m.delegates = {{"Keep", 1, 0}};
    });
    facts.segment_offset = one.offset;
    facts.segment_size = one.size;
    CHECK(error_of(facts) == one.error);
    if (one.error == Error::Ok) {
      const std::string all = text_of({kBytes.data(), kBytes.size()});
      const std::string part = all.substr(one.offset);
      CHECK(events.back() == "init " + part);
    }
  }
}

TEST_CASE("settings are found by their key") {
  forget();
  const ProgramFacts facts = with_delegates([](MethodFacts& m) {
    m.delegates = {{"Finds", 0, 0, {{"ab", {'1'}}, {"a", {'2'}}, {"a", {}}}}};
  });
  CHECK(error_of(facts) == Error::Ok);
  CHECK(events == Events{"a=2", "b: NotFound", "abc: NotFound"});
}

Error find_settings(const DelegateHandle&, const CompileSpecs& specs) {
  for (const char* const key : {"a", "b", "abc"}) {
    Span<const uint8_t> value;
    const Error error = specs.find(key, value);
    events.push_back(error == Error::Ok
                         ? std::string(key) + "=" + text_of(value)
                         : std::string(key) + ": " + to_string(error));
  }
  return Error::Ok;
}

constexpr Delegate kLinked[] = {
    kTable[0], kTable[1], {"Finds", 0, find_settings, run}};

TEST_CASE("arguments are what a delegate takes them for") {
  float items[4] = {};
  const int32_t sizes[] = {4};
  const uint8_t order[] = {0};
  Tensor tensor{
      Tag::Tensor, ScalarType::Float, 1, Tensor::kContiguous, items, sizes,
      order};
  Value values[3];
  values[0].set_tensor(tensor);
  tensor.flags |= Tensor::kReadOnly;
  values[1].set_tensor(tensor);
  values[2].set_int(4);
  const int32_t indices[] = {0, 1, 2};
  const Args args(values, indices, 3);
  CHECK(tensor_argument(args, 0, ScalarType::Float) == &values[0].tensor());
  CHECK(tensor_argument(args, 0, ScalarType::Int) == nullptr);
  CHECK(tensor_argument(args, 1, ScalarType::Float) == &values[1].tensor());
  CHECK(tensor_argument(args, 2, ScalarType::Float) == nullptr);
  CHECK(tensor_argument(args, 3, ScalarType::Float) == nullptr);
  CHECK(writable_argument(args, 0, ScalarType::Float) == &values[0].tensor());
  CHECK(writable_argument(args, 0, ScalarType::Int) == nullptr);
  CHECK(writable_argument(args, 1, ScalarType::Float) == nullptr);
  CHECK(writable_argument(args, 2, ScalarType::Float) == nullptr);
}

}  // namespace
}  // namespace orch::test

namespace orch {
const DelegateTable kRegisteredDelegates{test::kLinked};
}  // namespace orch
