// The loader: instructions, and the kernels that calls get.
#include <functional>
#include <string>
#include <vector>

#include "orch/loader.h"
#include "orch/method.h"
#include "support/call.h"
#include "support/load.h"

namespace orch::test {
namespace {

constexpr DtypeSet kFloatOnly = dtype_set(ScalarType::Float);

Error first(const Args&) { return Error::Ok; }
Error second(const Args&) { return Error::Ok; }

/// Which kernel the only call got, or why it got none.
std::string found(const ProgramFacts& facts, KernelTable kernels) {
  const Loaded loaded(facts, kernels);
  if (loaded.error != Error::Ok) return to_string(loaded.error);
  const KernelFn function = loaded.image.instructions[0].call.function;
  return function == first ? "first" : function == second ? "second" : "other";
}

TEST_CASE("instructions other than calls are checked") {
  using Fill = std::function<void(MethodFacts&)>;
  struct Case {
    Fill fill;
    Error error;
  };
  const TensorFacts flag{{1, 1}, {}, ScalarType::Bool, 0, 0, 1};
  const TensorFacts flags{{2}, {}, ScalarType::Bool, 0, 0, 1};
  const TensorFacts matrix{{2, 2}, {}, ScalarType::Float, 0, 0, 1};
  const TensorFacts row{{1, 2}, {}, ScalarType::Float, 0, 0, 1};
  const TensorFacts upto{{2, 2}, {}, ScalarType::Float, 1, 0, 1};
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
      // An output of fixed sizes has as many bytes as the API says.
      {[&](MethodFacts& m) { m.move(m.tensor(row), m.tensor(matrix)); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.move(m.tensor(upto), m.tensor(matrix)); },
       Error::InvalidProgram},
      {[&](MethodFacts& m) { m.move(m.tensor(row), m.tensor(upto)); },
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
      {[](MethodFacts& m) { m.delegate(); }, Error::InvalidProgram},
      {[](MethodFacts& m) { m.instruction(0, table({})); },
       Error::UnsupportedProgram},
      {[](MethodFacts& m) { m.instruction(6, table({})); },
       Error::UnsupportedProgram},
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
  for (const auto& row : cases) {
    const auto& index = row.first;
    const auto& error = row.second;
    facts.methods[0].inputs = {index};
    facts.methods[0].outputs = {0, 1, 2, 3};
    CAPTURE(index);
    CHECK(error_of(facts) == error);
  }
}

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
  for (const auto& row : kinds) {
    const auto& make = row.first;
    const auto& taken = row.second;
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
  for (const auto& row : cases) {
    const auto& signature = row.first;
    const auto& error = row.second;
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

TEST_CASE("a tensor that is returned must be writable") {
  const Kernel table[] = {{"test::f", "T>t", nullptr, first, kAll},
                          {"test::g", "t", nullptr, first, kAll}};
  ProgramFacts facts = with_arena([](MethodFacts& m) {
    m.tensor(kPlanned);                            // 0
    m.tensor({{1}, {}, ScalarType::Float, 0, 1});  // 1: constant
    m.tensor(kPlanned);                            // 2: replaced by a move
    m.move(0, 2);
  });
  facts.data.resize(4);
  facts.constants = {0, 0};
  const std::vector<std::pair<int32_t, Error>> results = {
      {0, Error::Ok}, {1, Error::InvalidProgram}, {2, Error::InvalidProgram}};
  for (const auto& row : results) {
    const int32_t result = row.first;
    const Error error = row.second;
    ProgramFacts changed = facts;
    changed.methods[0].call("test::f", {1, result});
    CAPTURE(result);
    CHECK(error_of(changed, table) == error);
    // After an out argument there is nothing to write.
    changed = facts;
    changed.methods[0].call("test::g", {0, result});
    CHECK(error_of(changed, table) == Error::Ok);
  }
}

TEST_CASE("a number that is returned gets the kind that its kernel gives") {
  const Kernel table[] = {
      {"test::bool", "I>B", nullptr, first, kAll},
      {"test::double", "S>D", nullptr, first, kAll},
      {"test::int", "S>I", nullptr, first, kAll},
      {"test::item", "T>S", nullptr, first, kAll},
      {"test::none", "I", nullptr, first, kAll},
      {"test::pick", "B?SS>S", nullptr, first, kAll},
      {"test::sum", "SS>S", nullptr, first, kAll},
  };
  const auto tensor = [](ScalarType dtype) {
    return [dtype](MethodFacts& m) {
      return m.tensor({{1}, {}, dtype, 0, 0, 1});
    };
  };
  using Make = std::function<int32_t(MethodFacts&)>;
  const Make whole = [](MethodFacts& m) { return m.integer(3); };
  const Make number = [](MethodFacts& m) { return m.number(3); };
  const Make flag = [](MethodFacts& m) { return m.boolean(true); };
  const Make none = [](MethodFacts& m) { return m.none(); };
  struct Case {
    const char* op;
    std::vector<Make> args;
    Tag kind;
  };
  const Case cases[] = {
      {"test::bool", {whole}, Tag::Bool},
      {"test::double", {whole}, Tag::Double},
      {"test::int", {number}, Tag::Int},
      {"test::item", {tensor(ScalarType::Long)}, Tag::Int},
      {"test::item", {tensor(ScalarType::Bool)}, Tag::Bool},
      {"test::item", {tensor(ScalarType::Half)}, Tag::Double},
      {"test::item", {tensor(ScalarType::BFloat16)}, Tag::Double},
      {"test::item", {tensor(ScalarType::Float)}, Tag::Double},
      {"test::item", {tensor(ScalarType::Double)}, Tag::Double},
      {"test::pick", {flag, whole, whole}, Tag::Int},
      {"test::pick", {none, flag, flag}, Tag::Bool},
      {"test::pick", {flag, flag, whole}, Tag::Int},
      {"test::pick", {flag, flag, number}, Tag::Double},
      {"test::sum", {whole, whole}, Tag::Int},
      {"test::sum", {whole, number}, Tag::Double},
      {"test::sum", {number, whole}, Tag::Double},
      {"test::none", {whole}, Tag::Int},
      {"test::sum", {whole}, Tag::Int},  // and refused
  };
  for (const Case& one : cases) {
    CAPTURE(&one - cases);
    std::vector<int32_t> args;
    const ProgramFacts facts = with_arena([&](MethodFacts& m) {
      for (const Make& make : one.args) args.push_back(make(m));
      args.push_back(m.integer(7));
      m.call(one.op, args);
    });
    const Loaded loaded(facts, table);
    const bool fits = &one != std::end(cases) - 1;
    CHECK(loaded.error == (fits ? Error::Ok : Error::InvalidProgram));
    if (!fits) continue;
    const Value& result = loaded.value(args.back());
    CHECK(result.tag() == one.kind);
    // The number itself is lost with its kind: the call writes another one.
    CHECK(result.scalar().bits() == (one.kind == Tag::Int ? 7 : 0));
  }
}

TEST_CASE("the kind of a result counts in everything that uses it") {
  const Kernel table[] = {{"test::bool", "I>B", nullptr, first, kAll},
                          {"test::of_bool", "B", nullptr, second, kAll},
                          {"test::of_int", "I", nullptr, second, kAll}};
  const auto with = [&](const std::function<void(MethodFacts&)>& use) {
    return error_of(program_of([&](MethodFacts& m) {
                      m.integer(0);  // 0
                      m.integer(0);  // 1: becomes a bool
                      m.call("test::bool", {0, 1});
                      use(m);
                    }),
                    table);
  };
  CHECK(with([](MethodFacts& m) { m.jump_unless(1, 0); }) == Error::Ok);
  CHECK(with([](MethodFacts& m) { m.jump_unless(0, 0); }) ==
        Error::InvalidProgram);
  CHECK(with([](MethodFacts& m) { m.call("test::of_bool", {1}); }) ==
        Error::Ok);
  CHECK(with([](MethodFacts& m) { m.call("test::of_int", {1}); }) ==
        Error::InvalidProgram);
  CHECK(with([](MethodFacts& m) { m.move(1, m.boolean(false)); }) == Error::Ok);
  CHECK(with([](MethodFacts& m) { m.move(0, 1); }) == Error::InvalidProgram);
  CHECK(with([](MethodFacts& m) { m.ints({0}); }) == Error::Ok);
  CHECK(with([](MethodFacts& m) { m.ints({1}); }) == Error::InvalidProgram);
  // What is declared as something else stays, and is refused.
  const auto declared = [&](const std::function<int32_t(MethodFacts&)>& make) {
    return error_of(program_of([&](MethodFacts& m) {
                      const int32_t result = make(m);
                      m.call("test::bool", {m.integer(0), result});
                    }),
                    table);
  };
  CHECK(declared([](MethodFacts& m) { return m.boolean(true); }) == Error::Ok);
  CHECK(declared([](MethodFacts& m) { return m.number(0); }) ==
        Error::InvalidProgram);
  CHECK(declared([](MethodFacts& m) { return m.none(); }) ==
        Error::InvalidProgram);
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

}  // namespace
}  // namespace orch::test
