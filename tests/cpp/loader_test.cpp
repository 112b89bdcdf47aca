// The loader: what it opens, values, and the memory of a method.
#include "orch/loader.h"

#include <functional>
#include <string>
#include <vector>

#include "orch/method.h"
#include "support/call.h"
#include "support/load.h"

namespace orch::test {
namespace {

Error kernel(const Args&) { return Error::Ok; }

Error open_error(const Block& file) {
  Program program;
  return Program::open(file.bytes(), program);
}

TEST_CASE("a program must be aligned") {
  const Block file = empty_program().file();
  const Block shifted(file.size() + 8);
  std::memcpy(shifted.data() + 8, file.data(), file.size());
  Program program;
  CHECK(open_error(file) == Error::Ok);
  CHECK(Program::open({shifted.data() + 8, file.size()}, program) ==
        Error::Misaligned);
}

TEST_CASE("every program that is cut off is refused, when opened or loaded") {
  ProgramFacts facts = with_arena([](MethodFacts& method) {
    method.tensor(kPlanned);
    method.tensor({{2}, {}, ScalarType::Float, 0, 1});
    method.call("test::f.out", {0, 1});
  });
  facts.data = {1, 2, 3, 4, 5, 6, 7, 8};
  facts.constants = {0, 0};
  const Kernel table[] = {{"test::f.out", "tT", nullptr, kernel, kAll}};
  const Block file = facts.file();
  REQUIRE(error_of(facts, table) == Error::Ok);
  for (size_t size = 0; size < file.size(); ++size) {
    CAPTURE(size);
    CHECK(open_error({file.data(), size}) != Error::Ok);
  }
}

TEST_CASE("the identifier and header of a program are checked") {
  struct Change {
    size_t at;
    std::vector<uint8_t> bytes;
    Error error;
  };
  ProgramFacts facts = empty_program();
  facts.data = {1, 2, 3, 4};
  const Block good = facts.file();
  uint64_t flatbuffer = 0;
  std::memcpy(&flatbuffer, good.data() + 16, 8);
  const auto word = [](uint64_t value) { return bytes_of(value); };
  const Change changes[] = {
      {4, {'E', 'T', '1', '3'}, Error::UnsupportedProgram},
      {0, {0, 0, 0, 0}, Error::InvalidProgram},  // root
      {0, {0xFF, 0xFF, 0xFF, 0x7F}, Error::InvalidProgram},
      {12, bytes_of<uint32_t>(0), Error::InvalidProgram},  // header length
      {12, bytes_of<uint32_t>(23), Error::InvalidProgram},
      {12, bytes_of<uint32_t>(UINT32_MAX), Error::InvalidProgram},
      {12, bytes_of<uint32_t>(24),
       Error::Ok},                           // one without a size of segments
      {16, word(0), Error::InvalidProgram},  // flatbuffer
      {16, word(good.size() + 1), Error::InvalidProgram},
      {16, word(UINT64_MAX), Error::InvalidProgram},
      {24, word(good.size() + 1), Error::InvalidProgram},  // segment base
      {24, word(UINT64_MAX), Error::InvalidProgram},
      {24, word(flatbuffer - 1), Error::InvalidProgram},
      {32, word(5), Error::InvalidProgram},  // size of all segments
      {32, word(UINT64_MAX), Error::InvalidProgram},
      {32, word(4), Error::Ok},
  };
  for (const Change& change : changes) {
    const Block file(good.data(), good.size());
    std::memcpy(file.data() + change.at, change.bytes.data(),
                change.bytes.size());
    CAPTURE(change.at);
    CAPTURE(int{change.bytes[0]});
    CHECK(open_error(file) == change.error);
  }
}

TEST_CASE("a flatbuffer ends in its file, also if there is no segment") {
  const Block good = empty_program().file();
  const uint64_t whole = good.size();
  for (const uint64_t size : {whole, whole + 1, UINT64_MAX}) {
    const Block file(good.data(), good.size());
    std::memcpy(file.data() + 16, &size, sizeof size);
    CAPTURE(size);
    CHECK(open_error(file) ==
          (size == whole ? Error::Ok : Error::InvalidProgram));
  }
}

TEST_CASE("formats of other times are refused, but for constants") {
  ProgramFacts facts = empty_program();
  facts.version = 1;
  CHECK(open_error(facts.file()) == Error::UnsupportedProgram);
  facts.version = 0;
  facts.inline_constants = 1;
  CHECK(open_error(facts.file()) == Error::Ok);
  CHECK(open_error(ProgramFacts{}.file()) == Error::InvalidProgram);
}

TEST_CASE("methods are found by name") {
  ProgramFacts facts;
  for (const char* name : {"encode", "", "decode"}) {
    facts.methods.emplace_back(name);
  }
  const Block file = facts.file();
  Program program;
  REQUIRE(Program::open(file.bytes(), program) == Error::Ok);
  CHECK(program.method_count() == 3);
  const Span<const char> name = program.method_name(2);
  CHECK(std::string(name.data(), name.size()) == "decode");
  CHECK(program.method_name(1).empty());
  CHECK(program.method_name(3).empty());
  uint32_t index = 9;
  CHECK(program.find_method("decode", index) == Error::Ok);
  CHECK(index == 2);
  for (const char* other : {"deco", "decoded", "Encode"}) {
    CHECK(program.find_method(other, index) == Error::NotFound);
  }
  MethodImage image;
  size_t used = 0;
  CHECK(load_method(program, 3, {}, {}, image, used) == Error::NotFound);
  CHECK(load_method(program, UINT32_MAX, {}, {}, image, used) ==
        Error::NotFound);
}

TEST_CASE("values of every kind are loaded") {
  int32_t v[12];
  const Loaded loaded(with_arena([&](MethodFacts& method) {
                        v[0] = method.none();
                        v[1] = method.integer(INT64_MIN + 1);
                        v[2] = method.boolean(true);
                        v[3] = method.number(-0.5);
                        v[4] = method.tensor(kPlanned);
                        v[5] = method.string("floor");
                        v[6] = method.ints({v[1], v[1]});
                        v[7] = method.numbers({1.5, -2});
                        v[8] = method.flags({1, 0});
                        v[9] = method.tensor_list({v[4]});
                        v[10] = method.optional_tensors({-1, v[4], v[0]});
                        v[11] = method.ints({});
                      }),
                      {});
  REQUIRE(loaded.error == Error::Ok);
  CHECK(loaded.value(v[0]).is_none());
  CHECK(loaded.value(v[1]).tag() == Tag::Int);
  CHECK(loaded.value(v[1]).to_int() == INT64_MIN + 1);
  CHECK(loaded.value(v[2]).tag() == Tag::Bool);
  CHECK(loaded.value(v[2]).to_bool());
  CHECK(loaded.value(v[3]).tag() == Tag::Double);
  CHECK(loaded.value(v[3]).to_double() == -0.5);
  CHECK(loaded.value(v[5]).tag() == Tag::String);
  const List& chars = loaded.value(v[5]).list();
  CHECK(std::string(static_cast<const char*>(chars.items), chars.count) ==
        "floor");
  CHECK(loaded.value(v[7]).tag() == Tag::DoubleList);
  CHECK(static_cast<const double*>(loaded.value(v[7]).list().items)[1] == -2);
  CHECK(loaded.value(v[8]).tag() == Tag::BoolList);
  CHECK(static_cast<const uint8_t*>(loaded.value(v[8]).list().items)[0] == 1);
  CHECK(loaded.value(v[11]).list().count == 0);

  const Args args(loaded.image.values.data(), v, 12);
  CHECK(args.int_list(6).size() == 2);
  CHECK(args.int_list(6)[1] == INT64_MIN + 1);
  CHECK(args.tensor_list(9)[0] == &args.tensor(4));
  CHECK(args.tensor_list(10).size() == 3);
  CHECK(args.tensor_list(10)[0] == nullptr);
  CHECK(args.tensor_list(10)[1] == &args.tensor(4));
  CHECK(args.tensor_list(10)[2] == nullptr);
}

TEST_CASE("values of a kind that nobody knows are of a newer program") {
  constexpr uint8_t kKinds[] = {0, 12, 255};
  for (const uint8_t kind : kKinds) {
    CHECK(error_of(program_of([&](MethodFacts& m) {
            m.value(kind, table({}));
          })) == Error::UnsupportedProgram);
  }
}

TEST_CASE("values that cannot be are refused") {
  using Fill = std::function<void(MethodFacts&)>;
  const Fill fills[] = {
      [](MethodFacts& m) { m.value(1, nullptr); },
      [](MethodFacts& m) { m.value(5, nullptr); },
      [](MethodFacts& m) { m.ints({0}); },  // itself, no Int
      [](MethodFacts& m) { m.ints({-1}); },
      [](MethodFacts& m) { m.ints({1}); },
      [](MethodFacts& m) { m.ints({INT64_MIN}); },
      [](MethodFacts& m) { m.ints({int64_t{1} << 32}); },
      [](MethodFacts& m) { m.ints({m.number(1)}); },
      [](MethodFacts& m) { m.tensor_list({1}); },
      [](MethodFacts& m) { m.tensor_list({m.integer(1)}); },
      [](MethodFacts& m) { m.optional_tensors({-2}); },
      [](MethodFacts& m) { m.optional_tensors({INT32_MIN}); },
      [](MethodFacts& m) { m.inputs = {0}; },
      [](MethodFacts& m) { m.outputs = {-1}; },
      [](MethodFacts& m) { m.outputs = {m.integer(1) + 1}; },
  };
  for (const Fill& fill : fills) {
    CAPTURE(&fill - fills);
    CHECK(error_of(program_of(fill)) == Error::InvalidProgram);
  }
}

TEST_CASE("a method has one chain of instructions") {
  ProgramFacts facts = empty_program();
  for (const uint32_t chains : {0U, 2U}) {
    facts.methods[0].chains = chains;
    CHECK(error_of(facts) == Error::UnsupportedProgram);
  }
}

TEST_CASE("memory that is too small or not aligned is refused") {
  const Block file = with_arena([](MethodFacts& method) {
                       method.tensor(kPlanned);
                       method.tensor({{4}, {}, ScalarType::Float, 1, 0, 1});
                       method.jump_unless(method.boolean(true), 0);
                     }).file();
  Program program;
  REQUIRE(Program::open(file.bytes(), program) == Error::Ok);
  const size_t needed =
      3 * sizeof(Value) + sizeof(Instruction) + 2 * sizeof(int32_t);
  const Block arena(80);
  const Block state(needed + 16);
  const auto load = [&](Span<uint8_t> block, size_t arena_at,
                        size_t arena_bytes) {
    const Span<uint8_t> spans[] = {{arena.data() + arena_at, arena_bytes}};
    MethodImage image;
    size_t used = 0;
    const Error error =
        load_method(program, 0, {}, {block, spans}, image, used);
    if (error != Error::Misaligned) CHECK(used == needed);
    return error;
  };
  const Span<uint8_t> exact(state.data(), needed);
  CHECK(load(exact, 0, 64) == Error::Ok);
  CHECK(load(exact, 0, 80) == Error::Ok);
  CHECK(load(state.span(), 0, 64) == Error::Ok);
  CHECK(load({state.data(), needed - 1}, 0, 64) == Error::StateTooSmall);
  CHECK(load({}, 0, 64) == Error::StateTooSmall);
  CHECK(load(exact, 0, 63) == Error::ArenaTooSmall);
  CHECK(load({state.data() + 4, needed}, 0, 64) == Error::Misaligned);
  CHECK(load(exact, 8, 64) == Error::Misaligned);
  MethodImage image;
  size_t used = 0;
  CHECK(load_method(program, 0, {}, {exact, {}}, image, used) ==
        Error::ArenaTooSmall);
}

TEST_CASE("dimensions that no tensor can have do not count as state") {
  // Their sum must not overflow, or too little state would seem enough.
  const Block file = with_arena([](MethodFacts& method) {
                       TensorFacts tensor = kPlanned;
                       tensor.sizes.assign(10000, 1);
                       tensor.dynamism = 1;
                       method.tensor(tensor);
                     }).file();
  Program program;
  REQUIRE(Program::open(file.bytes(), program) == Error::Ok);
  MethodImage image;
  size_t used = 0;
  CHECK(load_method(program, 0, {}, {}, image, used) == Error::StateTooSmall);
  CHECK(used == sizeof(Value) + (1 + kMaxDim) * sizeof(int32_t));
  const Block state(used);
  const Arenas arenas({64});
  CHECK(load_method(program, 0, {}, {state.span(), arenas.spans()}, image,
                    used) == Error::UnsupportedProgram);
}

TEST_CASE("mutable buffers begin with their initial state at every load") {
  ProgramFacts facts = with_arena([](MethodFacts& method) {
    method.tensor({{4}, {}, ScalarType::Char, 0, 2, 1, 8});
  });
  facts.data = {1, 2, 3, 4, 5, 6, 7, 8};
  facts.mutable_state = {0, 0, 3};
  const Loaded loaded(facts, {});
  REQUIRE(loaded.error == Error::Ok);
  const Tensor& tensor = loaded.value(0).tensor();
  CHECK((tensor.flags & Tensor::kReadOnly) == 0);
  int8_t* const items = tensor.mutable_data<int8_t>();
  CHECK(items ==
        reinterpret_cast<int8_t*>(loaded.arenas.spans()[0].data()) + 8);
  for (int round = 0; round < 2; ++round) {
    CHECK(items[0] == 4);
    CHECK(items[3] == 7);
    items[0] = 100;
    MethodImage image;
    size_t used = 0;
    CHECK(load_method(loaded.program, 0, {},
                      {loaded.state.span(), loaded.arenas.spans()}, image,
                      used) == Error::Ok);
  }

  ProgramFacts changed = facts;
  changed.mutable_state = {0, 0, 5};
  CHECK(error_of(changed) == Error::InvalidProgram);
  changed.mutable_state = {0, 0};
  CHECK(error_of(changed) == Error::InvalidProgram);
  changed = with_arena([](MethodFacts& method) {
    TensorFacts other{{4}, {}, ScalarType::Char, 0, 1, 1, 8};
    other.mutable_segment = 1;
    method.tensor(other);
  });
  changed.data = facts.data;
  changed.mutable_state = {0, 0};
  CHECK(error_of(changed) == Error::InvalidProgram);
}

TEST_CASE("two methods are loaded apart") {
  ProgramFacts facts;
  for (const char* name : {"one", "two"}) {
    MethodFacts method(name);
    method.arenas = {0, 64};
    method.tensor(kPlanned);
    for (size_t i = 0; i <= facts.methods.size(); ++i) method.integer(7);
    method.inputs = {0};
    facts.methods.push_back(method);
  }
  const Loaded one(facts, {}, 0);
  const Loaded two(facts, {}, 1);
  REQUIRE(one.error == Error::Ok);
  REQUIRE(two.error == Error::Ok);
  CHECK(one.image.values.size() == 2);
  CHECK(two.image.values.size() == 3);
  CHECK(one.value(0).tensor().memory != two.value(0).tensor().memory);
}

}  // namespace
}  // namespace orch::test
