// The loader: tensors, and where they lie.
#include <functional>
#include <string>
#include <vector>

#include "orch/loader.h"
#include "orch/method.h"
#include "support/call.h"
#include "support/load.h"

namespace orch::test {
namespace {

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
  CHECK(matrix.order()[0] == 1);
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
      {changed([](TensorFacts& t) { t.dtype = ScalarType{12}; }),
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

}  // namespace
}  // namespace orch::test
