// Loads programs made of facts.
#pragma once

#include "orch/loader.h"
#include "support/call.h"
#include "support/program_builder.h"

namespace orch::test {

/// A program, and one of its methods in exactly the memory it asks for.
struct Loaded {
  Block file;
  Program program;
  Arenas arenas;
  Block state;
  MethodImage image;
  size_t state_used = 0;
  Error error = Error::Ok;

  Loaded(const ProgramFacts& facts, KernelTable kernels, uint32_t method = 0)
      : file(facts.file()) {
    error = Program::open(file.bytes(), program);
    if (error != Error::Ok) return;
    arenas = Arenas(arena_sizes(file.bytes(), method));
    size_t needed = 0;
    error = load_method(program, method, kernels, {{}, arenas.spans()}, image,
                        needed);
    if (error != Error::StateTooSmall && error != Error::Ok) return;
    state = Block(needed);
    error = load_method(program, method, kernels,
                        {state.span(), arenas.spans()}, image, state_used);
  }

  Value& value(int32_t index) const {
    return image.values[static_cast<size_t>(index)];
  }
};

/// A method of which `fill` adds everything.
template <typename Fill>
ProgramFacts program_of(Fill fill) {
  ProgramFacts facts;
  facts.methods.emplace_back();
  fill(facts.methods[0]);
  return facts;
}

inline ProgramFacts empty_program() {
  return program_of([](MethodFacts&) {});
}

/// A method with one arena of 64 bytes.
template <typename Fill>
ProgramFacts with_arena(Fill fill) {
  return program_of([&](MethodFacts& method) {
    method.arenas = {0, 64};
    fill(method);
  });
}

/// A tensor of 4 floats at the start of arena 1.
inline const TensorFacts kPlanned{{4}, {}, ScalarType::Float, 0, 0, 1};

/// Every dtype.
inline constexpr DtypeSet kAll{UINT32_MAX};

inline Error error_of(const ProgramFacts& facts, KernelTable kernels = {}) {
  return Loaded(facts, kernels).error;
}

}  // namespace orch::test
