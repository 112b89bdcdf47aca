// A method that is ready to run, and the executor that runs it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/error.h"
#include "orch/kernel.h"
#include "orch/method_switches.h"
#include "orch/prepared.h"
#include "orch/span.h"
#include "orch/steps.h"
#include "orch/value.h"

namespace orch {

struct DelegateHandle;

#if ORCH_INDEX_BYTES == 4
/// A number in an instruction.
using InstructionWord = int32_t;
#else
using InstructionWord = uint16_t;
#endif

#if ORCH_KERNEL_CALLS
/// One instruction: 12 bytes on a 32-bit core, 8 in compact tables.
struct Instruction {
  enum class Kind : uint8_t {
    Kernel,
    Move,
    JumpFalse,
    Free,
    Delegate,
    Prepared
  };

  struct Call {
    KernelFn function;
#if ORCH_INDEX_BYTES == 4
    const int32_t* args;  // value indices, in the program
#else
    uint16_t args;  // index of the first one in `InstructionTable::args`
#endif
  };
  struct Move {
    InstructionWord from;
    InstructionWord to;
  };
  struct Jump {
    InstructionWord condition;  // value index: a Bool, or a Bool tensor of one
                                // element
    InstructionWord destination;  // instruction index; the count of
                                  // instructions ends the run
  };

#if ORCH_INDEX_BYTES == 4
  struct DelegateCall {
    const DelegateHandle* handle;
    const int32_t* args;  // value indices, in the program
  };

  union {
    Call call;
    Move move;
    Jump jump;
    DelegateCall delegate;
    const PreparedCall* prepared;
  };
  uint16_t arg_count;
  Kind kind;

  constexpr Instruction(Call to, uint16_t count)
      : call(to), arg_count(count), kind(Kind::Kernel) {}
  KernelFn function() const { return call.function; }
  const ValueIndex* args(const ValueIndex*) const { return call.args; }
#else
  union {
    KernelFn kernel;
    Move move;
    Jump jump;
    const PreparedCall* prepared;
  };
  uint16_t first_arg;
  uint8_t arg_count;
  Kind kind;

  constexpr Instruction(Call to, uint8_t count)
      : kernel(to.function),
        first_arg(to.args),
        arg_count(count),
        kind(Kind::Kernel) {}
  KernelFn function() const { return kernel; }
  /// `table`: those of all instructions.
  const ValueIndex* args(const ValueIndex* table) const {
    return table + first_arg;
  }
#endif

  Instruction() = default;
#if ORCH_INDEX_BYTES == 4
  constexpr explicit Instruction(Move what)
      : move(what), arg_count(0), kind(Kind::Move) {}
  constexpr explicit Instruction(Jump where)
      : jump(where), arg_count(0), kind(Kind::JumpFalse) {}
  constexpr explicit Instruction(const PreparedCall& what)
      : prepared(&what), arg_count(0), kind(Kind::Prepared) {}
#else
  constexpr explicit Instruction(Move what)
      : move(what), first_arg(0), arg_count(0), kind(Kind::Move) {}
  constexpr explicit Instruction(Jump where)
      : jump(where), first_arg(0), arg_count(0), kind(Kind::JumpFalse) {}
  constexpr explicit Instruction(const PreparedCall& what)
      : prepared(&what), first_arg(0), arg_count(0), kind(Kind::Prepared) {}
#endif
};
#else
/// One instruction, where all are prepared calls.
struct Instruction {
  const PreparedCall* prepared;

  constexpr explicit Instruction(const PreparedCall& what) : prepared(&what) {}
};
#endif

/// The instructions of a compact method, and the value indices of all their
/// arguments.
template <size_t kInstructions, size_t kArgs>
struct InstructionTable {
  Instruction instructions[kInstructions];
  ValueIndex args[kArgs];
};

/// Everything the executor needs. Made by the loader from a program, or at
/// build time. Trusted: every index in it is in range.
struct MethodImage {
  Span<const Instruction> instructions;
  Span<Value> values;
  Span<const ValueIndex> inputs;   // value indices
  Span<const ValueIndex> outputs;  // value indices
#if ORCH_INDEX_BYTES != 4 && ORCH_KERNEL_CALLS
  const ValueIndex* args;  // of all instructions, in their `InstructionTable`
#endif
#if ORCH_BY_ROWS
  const StepTable* steps;  // instead of instructions, or null
#endif
};

/// Where a run stopped.
struct RunStatus {
  Error error;
  uint32_t instruction;  // index of the instruction that failed
};

/// Runs all instructions once. Inputs must have been written before.
///
/// `instruction_limit` bounds loops in the program: the run ends with
/// InstructionLimit when more instructions were executed; 0 means no limit.
RunStatus execute(const MethodImage& method, uint32_t instruction_limit = 0);

#if ORCH_BY_ROWS
/// The same of a method that has steps.
RunStatus execute_steps(const MethodImage& method);
#endif

}  // namespace orch
