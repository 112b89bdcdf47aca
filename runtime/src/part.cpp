#include "orch/part.h"

#include "condition.h"

namespace orch {
namespace {

uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

#if ORCH_BY_ROWS
/// Where the steps end that begin at `at`, at most `count` of them.
const uint8_t* behind(const StepTable& table, const uint8_t* at,
                      uint32_t count) {
  for (; count != 0 && at != table.steps.end(); --count) {
    uint32_t number = 0;
    uint32_t shift = 0;
    do {
      number |= (*at & 127U) << shift;
      shift += 7;
    } while (*at++ >= 128);
    const StepTemplate& of = table.templates[number];
    for (uint32_t items = of.addresses + (of.words != 0 ? 1U : 0U); items != 0;
         --items) {
      while (*at++ >= 128) {
      }
    }
  }
  return at;
}

Error run_steps(const MethodImage& image, PartialRun& run, uint32_t count) {
  const StepTable& all = *image.steps;
  StepTable part = all;
  const uint8_t* const begin = all.steps.begin() + run.next;
  const uint8_t* const end = behind(all, begin, count);
  part.steps = {begin, static_cast<size_t>(end - begin)};
  MethodImage slice = image;
  slice.steps = &part;
  const RunStatus done = execute(slice);
  run.next += static_cast<uint32_t>(end - begin);
  run.executed += count;
  if (done.error == Error::Ok && end != all.steps.end()) return Error::NotDone;
  run = {};
  return done.error;
}
#endif

#if ORCH_KERNEL_CALLS
bool is_jump(const Instruction& instruction) {
  return instruction.kind == Instruction::Kind::JumpFalse;
}

/// The instruction after a jump.
uint32_t after(const MethodImage& image, uint32_t jump) {
  const Instruction& at = image.instructions[jump];
  if (holds(image.values[static_cast<size_t>(at.jump.condition)])) {
    return jump + 1;
  }
  return static_cast<uint32_t>(at.jump.destination);
}
#else
bool is_jump(const Instruction&) { return false; }
uint32_t after(const MethodImage&, uint32_t jump) { return jump + 1; }
#endif

/// Runs instructions from `run.next` on until there is a jump, at most `count`.
Error run_straight(const MethodImage& image, PartialRun& run, uint32_t count) {
  uint32_t length = 0;
  while (length < count && !is_jump(image.instructions[run.next + length])) {
    ++length;
  }
  if (length == 0) {
    run.next = after(image, run.next);
    ++run.executed;
    return Error::Ok;
  }
  // The executor runs what it is given from the first to the last.
  MethodImage slice = image;
  slice.instructions = {image.instructions.data() + run.next, length};
  run.next += length;
  run.executed += length;
  return execute(slice).error;
}

}  // namespace

Error run_part(const ModelMethod& method, PartialRun& run, uint32_t count) {
  const MethodImage& image = image_of(method);
  if (count == 0) count = 1;
#if ORCH_BY_ROWS
  if (image.steps != nullptr) return run_steps(image, run, count);
#endif
#if ORCH_INDEX_BYTES == 4
  const uint32_t limit =
      method.max_instructions == 0 ? UINT32_MAX : method.max_instructions;
#else
  constexpr uint32_t limit = UINT32_MAX;
#endif
  const uint32_t all = static_cast<uint32_t>(image.instructions.size());
  const uint32_t end = run.executed + smaller(count, UINT32_MAX - run.executed);
  Error error = Error::Ok;
  while (error == Error::Ok && run.next < all) {
    if (run.executed == end) return Error::NotDone;
    const uint32_t room = smaller(smaller(all - run.next, end - run.executed),
                                  limit - run.executed);
    error =
        room == 0 ? Error::InstructionLimit : run_straight(image, run, room);
  }
  run = {};
  return error;
}

}  // namespace orch
