// The loader: what it refuses, and what it makes of what it takes.
#include "orch/loader.h"

#include <functional>
#include <string>
#include <vector>

#include "orch/method.h"
#include "support/call.h"
#include "support/load.h"

namespace orch::test {
namespace {

constexpr DtypeSet kAll{UINT32_MAX};
constexpr DtypeSet kFloatOnly = dtype_set(ScalarType::Float);

Error first(const Args&) { return Error::Ok; }
Error second(const Args&) { return Error::Ok; }

/// A tensor of 4 floats at the start of arena 1.
const TensorFacts kPlanned{{4}, {}, ScalarType::Float, 0, 0, 1};

/// Which kernel the only call got, or why it got none.
std::string found(const ProgramFacts& facts, KernelTable kernels) {
  const Loaded loaded(facts, kernels);
  if (loaded.error != Error::Ok) return to_string(loaded.error);
  const KernelFn function = loaded.image.instructions[0].call.function;
  return function == first ? "first" : function == second ? "second" : "other";
}

Error error_of(const ProgramFacts& facts, KernelTable kernels = {}) {
  return Loaded(facts, kernels).error;
}

/// A method with one arena of 64 bytes.
ProgramFacts with_arena(const std::function<void(MethodFacts&)>& fill) {
  return program_of([&](MethodFacts& method) {
    method.arenas = {0, 64};
    fill(method);
  });
}

// Opening.

Error open_error(const Block& file) {
  Program program;
  return Program::open(file.bytes(), program);
}

ProgramFacts empty_program() {
  return program_of([](MethodFacts&) {});
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
  const Kernel table[] = {{"test::f.out", "tT", nullptr, first, kAll}};
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

TEST_CASE("formats of other times are refused") {
  ProgramFacts facts = empty_program();
  facts.version = 1;
  CHECK(open_error(facts.file()) == Error::UnsupportedProgram);
  facts.version = 0;
  facts.inline_constants = 1;
  CHECK(open_error(facts.file()) == Error::UnsupportedProgram);
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

// Values.

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

TEST_CASE("values that cannot be are refused") {
  using Fill = std::function<void(MethodFacts&)>;
  const Fill fills[] = {
      [](MethodFacts& m) { m.value(0, table({})); },
      [](MethodFacts& m) { m.value(12, table({})); },
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

// Tensors.

TEST_CASE("a planned tensor lies in its arena") {
  const Loaded loaded(
      program_of([](MethodFacts& method) {
        method.arenas = {0, 16, 80};
        method.tensor({{2, 3}, {1, 0}, ScalarType::Float, 0, 0, 2, 56});
        method.tensor({{}, {}, ScalarType::Long, 0, 0, 2, 72});
        method.tensor({{3, 0}, {}, ScalarType::Long, 0, 0, 1, 16});
      }),
      {});
  REQUIRE(loaded.error == Error::Ok);
  const Tensor& matrix = loaded.value(0).tensor();
  CHECK(matrix.dtype == ScalarType::Float);
  CHECK(matrix.dim == 2);
  CHECK(matrix.size(0) == 2);
  CHECK(matrix.size(1) == 3);
  CHECK(matrix.order[0] == 1);
  CHECK(matrix.flags == 0);
  CHECK(matrix.memory == loaded.arenas.spans()[1].data() + 56);
  const Tensor& scalar = loaded.value(1).tensor();
  CHECK(scalar.dim == 0);
  CHECK(scalar.numel() == 1);
  CHECK(scalar.flags == Tensor::kContiguous);
  CHECK(loaded.value(2).tensor().numel() == 0);
  // 3 values, nothing that is dynamic.
  CHECK(loaded.state_used == 3 * sizeof(Value));
}

TEST_CASE("a constant is used where it lies in the program") {
  ProgramFacts facts = program_of([](MethodFacts& method) {
    method.tensor({{2}, {}, ScalarType::Float, 0, 2});
    method.tensor({{0}, {}, ScalarType::Float, 0, 0});
  });
  facts.data.resize(24);
  facts.constants = {0, 0, 8};
  facts.segment_offset = 8;
  facts.segment_size = 16;
  const Loaded loaded(facts, {});
  REQUIRE(loaded.error == Error::Ok);
  const Tensor& tensor = loaded.value(0).tensor();
  const uint8_t* const end = loaded.file.data() + loaded.file.size();
  CHECK(tensor.memory == end - 8);
  CHECK(tensor.flags == (Tensor::kContiguous | Tensor::kReadOnly));
  CHECK((loaded.value(1).tensor().flags & Tensor::kReadOnly) != 0);

  struct Change {
    std::function<void(ProgramFacts&)> apply;
    Error error;
  };
  const Change changes[] = {
      {[](ProgramFacts& f) {
         f.constants = {0, 0, 9};
       },
       Error::InvalidProgram},
      {[](ProgramFacts& f) {
         f.constants = {0, 0, 7};
       },
       Error::InvalidProgram},
      {[](ProgramFacts& f) {
         f.constants = {0, 0, UINT64_MAX - 3};
       },
       Error::InvalidProgram},
      {[](ProgramFacts& f) {
         f.constants = {0, 0};
       },
       Error::InvalidProgram},
      {[](ProgramFacts& f) { f.constant_segment = 1; }, Error::InvalidProgram},
      {[](ProgramFacts& f) { f.segment_size = 17; }, Error::InvalidProgram},
      {[](ProgramFacts& f) { f.segment_offset = 9; }, Error::InvalidProgram},
      {[](ProgramFacts& f) { f.segment_offset = UINT64_MAX - 7; },
       Error::InvalidProgram},
      {[](ProgramFacts& f) { f.data.clear(); }, Error::InvalidProgram},
      {[](ProgramFacts& f) { f.data.resize(23); }, Error::InvalidProgram},
  };
  for (const Change& change : changes) {
    ProgramFacts changed = facts;
    change.apply(changed);
    CAPTURE(&change - changes);
    CHECK(error_of(changed) == change.error);
  }
}

TEST_CASE(
    "the sizes of a dynamic tensor lie in the state, after its capacity") {
  const Loaded loaded(with_arena([](MethodFacts& method) {
                        method.tensor({{4, 3}, {}, ScalarType::Float, 1, 0, 1});
                        method.tensor({{}, {}, ScalarType::Float, 2, 0, 1});
                      }),
                      {});
  REQUIRE(loaded.error == Error::Ok);
  CHECK(loaded.state_used == 2 * sizeof(Value) + 4 * sizeof(int32_t));
  Tensor& tensor = loaded.value(0).tensor();
  CHECK(tensor.flags == (Tensor::kContiguous | Tensor::kDynamic));
  CHECK(tensor.dims[-1] == 48);
  const int32_t fits[] = {2, 6};
  const int32_t large[] = {13, 1};
  CHECK(resize(tensor, large) == Error::ShapeTooLarge);
  CHECK(resize(tensor, fits) == Error::Ok);
  CHECK(tensor.size(1) == 6);
}

TEST_CASE("tensors that cannot be are refused") {
  struct Case {
    TensorFacts facts;
    Error error;
  };
  const auto changed = [](const std::function<void(TensorFacts&)>& change) {
    TensorFacts facts = kPlanned;
    change(facts);
    return facts;
  };
  const Case cases[] = {
      {changed([](TensorFacts&) {}), Error::Ok},
      {changed([](TensorFacts& t) { t.sizes = {16}; }), Error::Ok},
      {changed([](TensorFacts& t) { t.sizes = {17}; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.sizes = {-1}; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) {
         t.sizes = {0, INT32_MAX, 0};
       }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) {
         t.sizes = {1 << 16, 1 << 16, 1};
       }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.sizes.assign(8, 1); }), Error::Ok},
      {changed([](TensorFacts& t) { t.sizes.assign(9, 1); }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) {
         t.order = {0, 1};
       }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.order = {1}; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) {
         t.sizes = {2, 2};
         t.order = {1, 1};
       }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) {
         t.sizes = {2, 2};
         t.order = {0, 200};
       }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.dtype = ScalarType{8}; }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) { t.dtype = ScalarType{255}; }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) { t.dynamism = 3; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.dynamism = -1; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.storage_offset = 1; }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) { t.layout = 1; }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) { t.location = 1; }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) { t.location = 2; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.memory_id = 2; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.memory_id = UINT32_MAX; }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.memory_id = 0; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) {
         t.sizes = {0};
         t.memory_id = 0;
       }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.memory_id = -1; }),
       Error::UnsupportedProgram},
      {changed([](TensorFacts& t) { t.offset = 48; }), Error::Ok},
      {changed([](TensorFacts& t) { t.offset = 52; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.offset = 2; }), Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.offset = UINT32_MAX - 3; }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.offset_high = 1; }),
       Error::InvalidProgram},
      {changed([](TensorFacts& t) { t.data_buffer = 1; }),
       Error::InvalidProgram},
  };
  for (const Case& one : cases) {
    CAPTURE(&one - cases);
    CHECK(error_of(with_arena([&](MethodFacts& m) { m.tensor(one.facts); })) ==
          one.error);
  }
}

TEST_CASE("sizes of arenas are checked") {
  const ProgramFacts facts =
      with_arena([](MethodFacts& m) { m.tensor(kPlanned); });
  for (const int64_t size : {int64_t{15}, int64_t{-1}, INT64_MIN,
                             int64_t{INT32_MAX} + 1, INT64_MAX}) {
    ProgramFacts changed = facts;
    changed.methods[0].arenas[1] = size;
    const Block file = changed.file();
    Program program;
    REQUIRE(Program::open(file.bytes(), program) == Error::Ok);
    const Arenas arenas({64});
    const Block state(sizeof(Value));
    MethodImage image;
    size_t used = 0;
    CAPTURE(size);
    CHECK(load_method(program, 0, {}, {state.span(), arenas.spans()}, image,
                      used) == Error::InvalidProgram);
  }
}

// Memory.

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

// Instructions.

TEST_CASE("instructions other than calls are checked") {
  using Fill = std::function<void(MethodFacts&)>;
  struct Case {
    Fill fill;
    Error error;
  };
  const TensorFacts flag{{1, 1}, {}, ScalarType::Bool, 0, 0, 1};
  const TensorFacts flags{{2}, {}, ScalarType::Bool, 0, 0, 1};
  const TensorFacts matrix{{2, 2}, {}, ScalarType::Float, 0, 0, 1};
  const TensorFacts turned{{2, 2}, {1, 0}, ScalarType::Float, 0, 0, 1};
  const TensorFacts whole{{4}, {}, ScalarType::Int, 0, 0, 1};
  const Case cases[] = {
      // Values 0 and 1 are ints, the one that a case adds is 2.
      {[](MethodFacts& m) { m.move(0, 1); }, Error::Ok},
      {[](MethodFacts& m) { m.move(0, 2); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.move(0, 100000); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.move(100000, 0); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.move(-1, 1); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.move(1, INT32_MIN); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.move(0, m.number(1)); }, Error::InvalidProgram},
      {[&](MethodFacts& m) { m.move(m.tensor(matrix), m.tensor(matrix)); },
       Error::Ok},
      {[&](MethodFacts& m) { m.move(m.tensor(matrix), m.tensor(turned)); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.move(m.tensor(matrix), m.tensor(kPlanned)); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.move(m.tensor(kPlanned), m.tensor(whole)); },
       Error::InvalidProgram},
      {[](MethodFacts& m) {
         m.move(m.ints({0}), m.ints({0, 1}));
       },
       Error::Ok},
      {[](MethodFacts& m) {
         m.move(m.tensor_list({}), m.optional_tensors({}));
       },
       Error::InvalidProgram},
      {[](MethodFacts& m) { m.jump_unless(m.boolean(true), 0); }, Error::Ok},
      {[](MethodFacts& m) { m.jump_unless(m.boolean(true), 1); }, Error::Ok},
      {[](MethodFacts& m) { m.jump_unless(m.boolean(true), 2); },
       Error::InvalidProgram},
      {[](MethodFacts& m) { m.jump_unless(m.boolean(true), -1); },
       Error::InvalidProgram},
      {[](MethodFacts& m) { m.jump_unless(0, 0); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.jump_unless(2, 0); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.jump_unless(-100000, 0); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.jump_unless(m.tensor(flag), 0); }, Error::Ok},
      {[&](MethodFacts& m) { m.jump_unless(m.tensor(flags), 0); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.jump_unless(m.tensor(kPlanned), 0); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.free(m.tensor(kPlanned)); }, Error::Ok},
      {[](MethodFacts& m) { m.free(0); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.free(2); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.free(100000); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.delegate(); }, Error::DelegateMissing},
      {[](MethodFacts& m) { m.instruction(0, table({})); },
       Error::InvalidProgram},
      {[](MethodFacts& m) { m.instruction(6, table({})); },
       Error::InvalidProgram},
      {[](MethodFacts& m) { m.instruction(3, nullptr); },
       Error::InvalidProgram},
  };
  for (const Case& one : cases) {
    CAPTURE(&one - cases);
    CHECK(error_of(with_arena([&](MethodFacts& method) {
            method.integer(1);
            method.integer(2);
            one.fill(method);
          })) == one.error);
  }
}

TEST_CASE("nothing that is read only is an input") {
  ProgramFacts facts = with_arena([](MethodFacts& method) {
    method.tensor(kPlanned);
    method.tensor(kPlanned);
    method.tensor({{1}, {}, ScalarType::Char, 0, 1});
    method.integer(1);
    method.move(0, 1);
  });
  facts.data = {1};
  facts.constants = {0, 0};
  const std::vector<std::pair<int32_t, Error>> cases = {
      {0, Error::Ok},
      {1, Error::InvalidProgram},
      {2, Error::InvalidProgram},
      {3, Error::Ok}};
  for (const auto& [index, error] : cases) {
    facts.methods[0].inputs = {index};
    facts.methods[0].outputs = {0, 1, 2, 3};
    CAPTURE(index);
    CHECK(error_of(facts) == error);
  }
}

// Kernels.

TEST_CASE("an operator is found by its whole name") {
  const auto calls = [](const char* name) {
    return program_of([&](MethodFacts& m) { m.call(name, {m.integer(1)}); });
  };
  const Kernel table[] = {
      {"test::f", "I", nullptr, first, kAll},
      {"test::f.out", "I", nullptr, second, kAll},
  };
  CHECK(found(calls("test::f"), table) == "first");
  CHECK(found(calls("test::f.out"), table) == "second");
  for (const char* name : {"test::f.ou", "test::f.outs", "test::", "f", "f.out",
                           "test::g", "test::f.", "aten::f", ""}) {
    CAPTURE(name);
    const Error error = error_of(calls(name), table);
    if (std::string(name) == "test::f.") {
      CHECK(error == Error::Ok);  // has no overload
    } else {
      CHECK(error == Error::OperatorMissing);
    }
  }
  ProgramFacts facts = calls("test::f");
  facts.methods[0].operators[0] = {std::string("test::f\0", 8), ""};
  CHECK(error_of(facts, table) == Error::OperatorMissing);
  facts.methods[0].operators[0] = {"test::f", std::string("out\0", 4)};
  CHECK(error_of(facts, table) == Error::OperatorMissing);
  // Listed, but not called: nobody needs it.
  facts = empty_program();
  facts.methods[0].operators = {{"test::none", "out"}};
  CHECK(error_of(facts, table) == Error::Ok);
}

TEST_CASE("a call names operators and values that exist") {
  const Kernel table[] = {{"test::f", "I", nullptr, first, kAll}};
  for (const int32_t arg : {1, -1, INT32_MAX, INT32_MIN}) {
    CHECK(error_of(program_of([&](MethodFacts& m) {
                     m.integer(1);
                     m.call("test::f", {arg});
                   }),
                   table) == Error::InvalidProgram);
  }
  for (const int32_t op : {1, -1, INT32_MAX}) {
    CHECK(error_of(program_of([&](MethodFacts& m) {
                     m.operators = {{"test::f", ""}};
                     m.integer(1);
                     m.instruction(1, orch::test::table(
                                          {scalar(0, op),
                                           child(1, vector_of<int32_t>({0}))}));
                   }),
                   table) == Error::InvalidProgram);
  }
  const auto with_args = [](size_t count) {
    return program_of([&](MethodFacts& m) {
      m.call("test::f", std::vector<int32_t>(count, m.integer(1)));
    });
  };
  CHECK(error_of(with_args(0), table) == Error::InvalidProgram);
  CHECK(error_of(with_args(65535), table) == Error::Ok);
  CHECK(error_of(with_args(65536), table) == Error::InvalidProgram);
}

TEST_CASE("arguments must fit the letters of the signature") {
  // One value of each kind, and the letters that take it.
  const std::vector<
      std::pair<std::function<int32_t(MethodFacts&)>, std::string>>
      kinds = {
          {[](MethodFacts& m) { return m.none(); }, "?"},
          {[](MethodFacts& m) { return m.tensor(kPlanned); }, "Tt"},
          {[](MethodFacts& m) { return m.integer(1); }, "IS"},
          {[](MethodFacts& m) { return m.number(1); }, "DS"},
          {[](MethodFacts& m) { return m.boolean(true); }, "BS"},
          {[](MethodFacts& m) { return m.string("a"); }, "C"},
          {[](MethodFacts& m) { return m.ints({}); }, "J"},
          {[](MethodFacts& m) { return m.numbers({}); }, "E"},
          {[](MethodFacts& m) { return m.flags({}); }, "A"},
          {[](MethodFacts& m) { return m.tensor_list({}); }, "LlO"},
          {[](MethodFacts& m) { return m.tensor_list({m.tensor(kPlanned)}); },
           "LlO"},
          {[](MethodFacts& m) { return m.optional_tensors({-1}); }, "O"},
          {[](MethodFacts& m) { return m.optional_tensors({m.none()}); }, "O"},
      };
  for (const auto& [make, taken] : kinds) {
    const ProgramFacts facts =
        with_arena([&](MethodFacts& m) { m.call("test::f", {make(m)}); });
    for (const char letter : std::string("TtLlOIDBSCJEA")) {
      for (const bool optional : {false, true}) {
        const std::string signature =
            std::string(1, letter) + (optional ? "?" : "");
        const Kernel table[] = {
            {"test::f", signature.c_str(), nullptr, first, kAll}};
        const bool takes = taken.find(letter) != std::string::npos ||
                           (optional && taken == "?");
        CAPTURE(signature);
        CAPTURE(taken);
        CHECK(error_of(facts, table) ==
              (takes ? Error::Ok : Error::InvalidProgram));
      }
    }
  }
}

TEST_CASE("a call has at least the arguments of the signature") {
  const ProgramFacts facts = with_arena([](MethodFacts& m) {
    m.call("test::f", {m.tensor(kPlanned), m.none(), m.integer(1)});
  });
  const std::vector<std::pair<const char*, Error>> cases = {
      {"", Error::Ok},
      {"T", Error::Ok},
      {"TT?I", Error::Ok},
      {"TI?>I", Error::Ok},
      {"TT?>S", Error::Ok},
      {"TT?>", Error::Ok},
      {"T>I", Error::InvalidProgram},
      {"TTI", Error::InvalidProgram},
      {"TT?ID", Error::InvalidProgram},
      {"TT?II?", Error::InvalidProgram},
  };
  for (const auto& [signature, error] : cases) {
    const Kernel table[] = {{"test::f", signature, nullptr, first, kAll}};
    CAPTURE(signature);
    CHECK(error_of(facts, table) == error);
  }
}

TEST_CASE("every tensor of a call needs a dtype that is linked") {
  const TensorFacts chars{{4}, {}, ScalarType::Char, 0, 0, 1};
  const Kernel table[] = {{"test::f", "TOT?t", nullptr, first, kFloatOnly}};
  for (int which = -1; which < 5; ++which) {
    const auto tensor = [&](MethodFacts& m, int position) {
      return m.tensor(position == which ? chars : kPlanned);
    };
    const ProgramFacts facts = with_arena([&](MethodFacts& m) {
      const int32_t a = tensor(m, 0);
      const int32_t b = tensor(m, 1);
      const int32_t c = tensor(m, 2);
      const int32_t list = m.optional_tensors({b, -1, c});
      m.call("test::f", {a, list, tensor(m, 3), tensor(m, 4)});
    });
    CAPTURE(which);
    CHECK(error_of(facts, table) ==
          (which < 0 ? Error::Ok : Error::DtypeNotSelected));
  }
}

TEST_CASE("outs must be writable") {
  const Kernel table[] = {{"test::f", "Tt", nullptr, first, kAll},
                          {"test::list", "Tl", nullptr, first, kAll}};
  ProgramFacts facts = with_arena([](MethodFacts& m) {
    m.tensor(kPlanned);                            // 0
    m.tensor({{1}, {}, ScalarType::Float, 0, 1});  // 1: constant
    m.tensor(kPlanned);  // 2: may become one by a move
    m.tensor({{0}, {}, ScalarType::Float, 0, 0});  // 3: no memory
    m.tensor_list({0});                            // 4
    m.tensor_list({0, 1});                         // 5
    m.tensor_list({2, 0});                         // 6
  });
  facts.data.resize(4);
  facts.constants = {0, 0};
  struct Case {
    const char* op;
    int32_t out;
    Error error;
  };
  const Case cases[] = {
      {"test::f", 0, Error::Ok},
      {"test::f", 1, Error::InvalidProgram},
      {"test::f", 2, Error::InvalidProgram},
      {"test::f", 3, Error::InvalidProgram},
      {"test::list", 4, Error::Ok},
      {"test::list", 5, Error::InvalidProgram},
      {"test::list", 6, Error::InvalidProgram},
  };
  for (const Case& one : cases) {
    for (const bool move_first : {false, true}) {
      ProgramFacts changed = facts;
      MethodFacts& method = changed.methods[0];
      if (move_first) method.move(0, 2);
      method.call(one.op, {1, one.out});
      if (!move_first) method.move(0, 2);
      CAPTURE(one.op);
      CAPTURE(one.out);
      CHECK(error_of(changed, table) == one.error);
    }
  }
}

TEST_CASE("a specialised kernel goes before the fallback") {
  const ProgramFacts facts = with_arena([](MethodFacts& m) {
    m.call("test::f.out",
           {m.tensor({{2, 2}, {1, 0}, ScalarType::Float, 0, 0, 1}),
            m.tensor({{}, {}, ScalarType::Char, 0, 0, 1})});
  });
  const char* const key = "v1/6;1,0|1;";
  const Kernel specialised = {"test::f.out", "Tt", key, first, kAll};
  const Kernel other = {"test::f.out", "Tt", "v1/6;0,1|1;", first, kAll};
  const Kernel fallback = {"test::f.out", "Tt", nullptr, second, kAll};
  const Kernel both[] = {specialised, fallback};
  CHECK(found(facts, both) == "first");
  const Kernel no_match[] = {other, fallback};
  CHECK(found(facts, no_match) == "second");
  const Kernel only_other[] = {other};
  CHECK(error_of(facts, only_other) == Error::DtypeNotSelected);
  // One whose dtypes are not linked does not serve the call.
  const Kernel without_char = {"test::f.out", "Tt", key, first, kFloatOnly};
  const Kernel next[] = {without_char, fallback};
  CHECK(found(facts, next) == "second");
}

TEST_CASE("kernel keys have an entry for each tensor that is there") {
  struct Case {
    const char* key;
    bool fits;
  };
  // (float[2, 2], None, [None, char[1]], [], int, half[], half[] again)
  const ProgramFacts facts = with_arena([](MethodFacts& m) {
    const int32_t matrix = m.tensor({{2, 2}, {}, ScalarType::Float, 0, 0, 1});
    const int32_t chars = m.tensor({{1}, {}, ScalarType::Char, 0, 0, 1});
    const int32_t out = m.tensor({{}, {}, ScalarType::BFloat16, 0, 0, 1});
    m.call("test::f.out",
           {matrix, m.none(), m.optional_tensors({-1, chars, matrix}),
            m.tensor_list({}), m.integer(1), out, out});
  });
  const Case cases[] = {
      {"v1/6;0,1|1;0|15;|15;", true},      {"v1/6;0,1|1;0|15;", false},
      {"v1/6;0,1|1;0|15;|15;|15;", false}, {"v1/6;0,1|15;|15;", false},
      {"v1/6;0,1|1;0|15;|15;0", false},    {"v1/6;0|1;0|15;|15;", false},
      {"v1/6;0,1,2|1;0|15;|15;", false},   {"v1/6;1,0|1;0|15;|15;", false},
      {"v1/7;0,1|1;0|15;|15;", false},     {"v1/6;0,1|11;0|15;|15;", false},
      {"v1/6;0,1|1;0|1;|15;", false},      {"v1", false},
  };
  for (const Case& one : cases) {
    const Kernel table[] = {{"test::f.out", "TT?OLIt", one.key, first, kAll},
                            {"test::f.out", "TT?OLIt", nullptr, second, kAll}};
    CAPTURE(one.key);
    CHECK(found(facts, table) == (one.fits ? "first" : "second"));
  }
  const ProgramFacts bare = program_of([](MethodFacts& m) {
    m.call("test::g", {m.integer(1), m.integer(1)});
  });
  const Kernel table[] = {{"test::g", "I>I", "v1", first, kAll}};
  CHECK(found(bare, table) == "first");
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
