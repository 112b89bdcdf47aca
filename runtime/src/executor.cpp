#include <string.h>

#include "condition.h"
#include "orch/method.h"
#include "switches.h"

/// 1 for products whose profile asks for trace hooks; else nothing of them is
/// compiled.
#ifndef ORCH_TRACE
#define ORCH_TRACE 0
#endif

/// 1 for products that link delegates; else nothing of them is compiled.
#ifndef ORCH_DELEGATES
#define ORCH_DELEGATES 0
#endif

#if ORCH_DELEGATES
#include "orch/delegate.h"
#endif

#if ORCH_TRACE
#include "orch/model.h"
#include "trace_hooks.h"
#endif

namespace orch {

#if ORCH_TRACE
/// All methods of the product. Defined by generated code.
extern const Span<const ModelMethod* const> kModelMethods;
#endif

namespace {

#if ORCH_TRACE
/// Calls the product's hooks around every instruction of a run.
class Trace {
 public:
  explicit Trace(const MethodImage& image) {
    const uint32_t count = static_cast<uint32_t>(kModelMethods.size());
    for (uint32_t i = 0; i < count; ++i) {
      if (&image_of(*kModelMethods[i]) == &image) method_ = i;
    }
  }
  void begin() { begin_ = orch_trace_ticks(); }
  void end(uint32_t instruction) const {
    const orch_ticks end = orch_trace_ticks();
    orch_trace_record(method_, instruction, begin_, end);
  }

 private:
  uint32_t method_ = ORCH_TRACE_UNKNOWN_METHOD;
  orch_ticks begin_ = 0;
};
#else
struct Trace {
  explicit Trace(const MethodImage&) {}
  void begin() const {}
  void end(uint32_t) const {}
};
#endif

#if ORCH_KERNEL_CALLS
/// The kind of an instruction, among those that the product has.
Instruction::Kind kind_of(const Instruction& instruction) {
  using Kind = Instruction::Kind;
  const Kind kind = instruction.kind;
  if (kControlFlow) return kind;
  return kPreparedCalls && kind == Kind::Prepared ? kind : Kind::Kernel;
}
#endif

#if ORCH_BY_ROWS
/// Takes the next item of a step. Inlined, as all that reads steps: what does
/// is known to be the executor.
__attribute__((always_inline)) inline uint32_t take(const uint8_t*& at) {
  uint32_t item = 0;
  for (uint32_t shift = 0;; shift += 7) {
    const uint32_t byte = *at++;
    item |= (byte & 127) << shift;
    if (byte < 128) return item;
  }
}
#endif

}  // namespace

#if ORCH_BY_ROWS
// Functions of their own: `run --profile` knows them by their names.

/// Makes the struct of the step whose template's number ends before `at`: a
/// copy of the template's in `bytes`, with its header behind it if words of
/// that change. Returns the next step. Kernels run without its frame.
__attribute__((noinline)) const uint8_t* make_step(const StepTemplate& of,
                                                   uint8_t* bytes,
                                                   const uint8_t* at) {
  const size_t begin = (1U + of.call_addresses) * sizeof(void*);
  const size_t end = begin + of.call_numbers * sizeof(int32_t);
  memcpy(bytes, of.call, end);
  const uint16_t* layout = of.layout;
  for (uint32_t left = of.addresses; left != 0; --left) {
    uint8_t* const address = bytes + (1U + layout[0]) * sizeof(void*);
    uintptr_t place;
    memcpy(&place, address, sizeof place);
    place += take(at) * layout[1];
    memcpy(address, &place, sizeof place);
    layout += 2;
  }
  uint32_t number = 0;
  if (of.words != 0) number = take(at);
  if (number != 0) {
    uint8_t* words = bytes + begin;
    if (of.header_words != 0) {
      uint8_t* const address = bytes + of.header * sizeof(void*);
      const void* header;
      memcpy(&header, address, sizeof header);
      words = bytes + end;
      memcpy(words, header, of.header_words * sizeof(int32_t));
      memcpy(address, &words, sizeof words);
    }
    const int32_t* shape = of.shapes + (number - 1) * of.words;
    for (uint32_t left = of.words; left != 0; --left) {
      memcpy(words + *layout++ * sizeof *shape, shape, sizeof *shape);
      ++shape;
    }
  }
  return at;
}

__attribute__((noinline)) RunStatus execute_steps(const MethodImage& method) {
  Trace trace(method);
  uint32_t next = 0;
  const StepTable& table = *method.steps;
  const uint8_t* at = table.steps.begin();
#if ORCH_GIVEN_ROWS
  if (table.run != nullptr) {
    at = table.run->next;
    next = table.run->number;
  }
#endif
  while (at != table.steps.end()) {
    trace.begin();
    const uint32_t of = take(at);
    at = make_step(table.templates[of], table.copy, at);
    const PreparedCall& call =
        *reinterpret_cast<const PreparedCall*>(table.copy);
#if ORCH_GIVEN_ROWS
    if (table.run != nullptr && of == table.given) {
      const MoveCall& rows = static_cast<const MoveCall&>(call);
      table.run->to = static_cast<uint8_t*>(rows.out);
      table.run->room = static_cast<uint32_t>(rows.size_bytes);
      trace.end(next++);
      break;
    }
#endif
    call.run(call);
    trace.end(next++);
  }
#if ORCH_GIVEN_ROWS
  if (table.run != nullptr) {
    table.run->next = at;
    table.run->number = next;
  }
#endif
  return {Error::Ok, next};
}
#endif

#if ORCH_KERNEL_CALLS
RunStatus execute(const MethodImage& method, uint32_t instruction_limit) {
#if ORCH_BY_ROWS
  if (method.steps != nullptr) return execute_steps(method);
#endif
  const uint32_t count = static_cast<uint32_t>(method.instructions.size());
  Value* const values = method.values.data();
#if ORCH_INDEX_BYTES == 4
  constexpr const ValueIndex* table = nullptr;  // each instruction has its own
#else
  const ValueIndex* const table = method.args;
#endif
  Trace trace(method);
  uint32_t executed = 0;
  uint32_t next = 0;
  while (next < count) {
    const Instruction& instruction = method.instructions[next];
    if (instruction_limit != 0 && executed++ == instruction_limit) {
      return {Error::InstructionLimit, next};
    }
    trace.begin();
    switch (kind_of(instruction)) {
      case Instruction::Kind::Prepared:
        if constexpr (kPreparedCalls) {
          instruction.prepared->run(*instruction.prepared);
          trace.end(next);
        }
        break;
      case Instruction::Kind::Kernel: {
        const Args args(values, instruction.args(table), instruction.arg_count);
        const Error error = instruction.function()(args);
        trace.end(next);
        if (error != Error::Ok) return {error, next};
        break;
      }
      case Instruction::Kind::Move:
        values[instruction.move.to] = values[instruction.move.from];
        trace.end(next);
        break;
      case Instruction::Kind::JumpFalse: {
        const bool jumps = !holds(values[instruction.jump.condition]);
        trace.end(next);
        if (jumps) {
          next = static_cast<uint32_t>(instruction.jump.destination);
          continue;
        }
        break;
      }
      case Instruction::Kind::Free:
        trace.end(next);
        break;  // planned memory needs no freeing
#if ORCH_DELEGATES
      case Instruction::Kind::Delegate: {
        const DelegateHandle& handle = *instruction.delegate.handle;
        const Args args(values, instruction.delegate.args,
                        instruction.arg_count);
        const Error error = handle.delegate->execute(handle, args);
        trace.end(next);
        if (error != Error::Ok) return {error, next};
        break;
      }
#else
      case Instruction::Kind::Delegate:
        break;  // the loader makes none
#endif
    }
    ++next;
  }
  return {Error::Ok, count};
}
#else
RunStatus execute(const MethodImage& method, uint32_t) {
#if ORCH_BY_ROWS
  if (method.steps != nullptr) return execute_steps(method);
#endif
  Trace trace(method);
  uint32_t next = 0;
  for (const Instruction& instruction : method.instructions) {
    trace.begin();
    instruction.prepared->run(*instruction.prepared);
    trace.end(next++);
  }
  return {Error::Ok, next};
}
#endif

}  // namespace orch
