#include "orch/method.h"

namespace orch {
namespace {

/// Whether a jump is not taken. A condition is a Bool, or a Bool tensor: of one
/// element at load, but a move can have replaced it by one that is empty.
bool holds(const Value& condition) {
  if (!condition.is_tensor()) return condition.to_bool();
  const Tensor& tensor = condition.tensor();
  return tensor.numel() != 0 && *tensor.data<uint8_t>() != 0;
}

}  // namespace

RunStatus execute(const MethodImage& method, uint32_t instruction_limit) {
  const uint32_t count = static_cast<uint32_t>(method.instructions.size());
  Value* const values = method.values.data();
  uint32_t executed = 0;
  uint32_t next = 0;
  while (next < count) {
    const Instruction& instruction = method.instructions[next];
    if (instruction_limit != 0 && executed++ == instruction_limit) {
      return {Error::InstructionLimit, next};
    }
    switch (instruction.kind) {
      case Instruction::Kind::Kernel: {
        const Args args(values, instruction.call.args, instruction.arg_count);
        const Error error = instruction.call.function(args);
        if (error != Error::Ok) return {error, next};
        break;
      }
      case Instruction::Kind::Move:
        values[instruction.move.to] = values[instruction.move.from];
        break;
      case Instruction::Kind::JumpFalse:
        if (!holds(values[instruction.jump.condition])) {
          next = static_cast<uint32_t>(instruction.jump.destination);
          continue;
        }
        break;
      case Instruction::Kind::Free:
        break;  // planned memory needs no freeing
    }
    ++next;
  }
  return {Error::Ok, count};
}

}  // namespace orch
