// A method that is ready to run, and the executor that runs it.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/kernel.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

struct DelegateHandle;

/// One instruction: 12 bytes on a 32-bit core.
struct Instruction {
  enum class Kind : uint8_t { Kernel, Move, JumpFalse, Free, Delegate };

  struct Call {
    KernelFn function;
    const int32_t* args;  // value indices, in the program
  };
  struct Move {
    int32_t from;
    int32_t to;
  };
  struct Jump {
    int32_t condition;  // value index: a Bool, or a Bool tensor of one element
    int32_t destination;  // instruction index; the count of instructions ends
                          // the run
  };
  struct DelegateCall {
    const DelegateHandle* handle;
    const int32_t* args;  // value indices, in the program
  };

  union {
    Call call;
    Move move;
    Jump jump;
    DelegateCall delegate;
  };
  uint16_t arg_count;
  Kind kind;

  Instruction() = default;
  constexpr Instruction(Call to, uint16_t count)
      : call(to), arg_count(count), kind(Kind::Kernel) {}
  constexpr explicit Instruction(Move what)
      : move(what), arg_count(0), kind(Kind::Move) {}
  constexpr explicit Instruction(Jump where)
      : jump(where), arg_count(0), kind(Kind::JumpFalse) {}
};

/// Everything the executor needs. Made by the loader from a program, or at
/// build time. Trusted: every index in it is in range.
struct MethodImage {
  Span<const Instruction> instructions;
  Span<Value> values;
  Span<const int32_t> inputs;   // value indices
  Span<const int32_t> outputs;  // value indices
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

}  // namespace orch
