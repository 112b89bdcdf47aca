// Loading a method: untrusted program bytes in, a checked MethodImage out.

#include <string.h>

#include "find_kernel.h"
#include "method_loader.h"

/// 0 if no kernel of the product returns a number other than an int: then no
/// number has to be settled, and products do not pay for that.
#ifndef ORCH_SETTLES_RESULTS
#define ORCH_SETTLES_RESULTS 1
#endif

/// 0 if no methods of the product share state.
#ifndef ORCH_SHARES_STATE
#define ORCH_SHARES_STATE 1
#endif

namespace orch {
namespace {

/// Values of the InstructionArguments union.
enum class CallType : uint8_t {
  Kernel = 1,
  Delegate,
  Move,
  JumpFalse,
  Free,
};

constexpr bool kSettlesResults = ORCH_SETTLES_RESULTS != 0;
constexpr bool kSharesState = ORCH_SHARES_STATE != 0;

}  // namespace

Error MethodLoader::load(uint32_t method, MethodImage& image,
                         size_t& state_used) {
  state_used = 0;
  ORCH_CHECK(
      reinterpret_cast<uintptr_t>(memory_.state.data()) % kStateAlignment == 0,
      Error::Misaligned);
  root_ = reader_.root();
  const FbVector plans = reader_.vector(root_, slot::kExecutionPlan, 4);
  ORCH_CHECK(method < plans.count, Error::NotFound);
  const FbTable plan = reader_.item(plans, method, slot::kExecutionPlan);
  values_at_ = reader_.vector(plan, slot::kValues, 4);
  operators_ = reader_.vector(plan, slot::kOperators, 4);
  buffer_sizes_ = reader_.vector(plan, slot::kBufferSizes, 8);
  const FbVector chains = reader_.vector(plan, slot::kChains, 4);
  (void)reader_.text(plan, slot::kName);
  ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
  // The exporter writes one chain; jumps are relative to it.
  ORCH_CHECK(chains.count == 1, Error::UnsupportedProgram);
  instructions_at_ = reader_.vector(reader_.item(chains, 0, slot::kChains),
                                    slot::kInstructions, 4);
  ORCH_CHECK(
      values_at_.count <= kMaxCount && instructions_at_.count <= kMaxCount,
      Error::InvalidProgram);

  clear_state();
  if (kSharesState && memory_.shares_state) ORCH_TRY(load_shared_state(plans));
  values_count_ = values_at_.count;
  values_ = state_.take<Value>(values_at_.count);
  instructions_ = state_.take<Instruction>(instructions_at_.count);
#if ORCH_DELEGATES
  ORCH_TRY(count_delegates(plan));
#endif
  Bump sizes = state_;
#if ORCH_DELEGATES
  size_t dynamic_words = 0;
  ORCH_TRY(count_dynamic(dynamic_words));
  sizes.take<int32_t>(dynamic_words);
  ORCH_TRY(count_delegate_states(sizes));
#endif
  Error error = Error::Ok;
  bool fits = sizes.fits();
  for (uint32_t i = 0; i < values_at_.count && fits; ++i) {
    error = load_value(i);
    fits = error == Error::Ok && state_.fits();
  }
#if !ORCH_DELEGATES
  if (fits) {
    sizes = state_;
  } else {  // how much state there should be
    size_t dynamic_words = 0;
    ORCH_TRY(count_dynamic(dynamic_words));
    sizes.take<int32_t>(dynamic_words);
  }
#endif
  state_used = sizes.used();
  ORCH_CHECK(sizes.fits(), Error::StateTooSmall);
  ORCH_TRY(error);
  if constexpr (kCallerIo) ORCH_TRY(check_callers(plan));
  // What numbers are comes first, as everything else is checked against it.
  // Moves before calls: they decide which values may come to alias a constant.
  if constexpr (kSettlesResults) ORCH_TRY(load_instructions(Pass::Results));
  ORCH_TRY(check_lists());
  ORCH_TRY(load_instructions(Pass::Control));
  ORCH_TRY(load_instructions(Pass::Calls));
  ORCH_TRY(indices(plan, slot::kInputs, image.inputs));
  ORCH_TRY(indices(plan, slot::kOutputs, image.outputs));
  image.values = {values_, values_at_.count};
  image.instructions = {instructions_, instructions_at_.count};
#if ORCH_DELEGATES
  return start_delegates();
#else
  return Error::Ok;
#endif
}

/// State without data in the program begins with zeros, as it does where
/// memory is zeroed at start; what was loaded before may have left something.
void MethodLoader::clear_state() {
  for (size_t i = 0; i < memory_.arenas.size(); ++i) {
    const Span<uint8_t> arena = memory_.arenas[i];
    // Methods that overlap keep nothing there.
    if (arena.size() == 0 || is_common(arena.data())) continue;
    memset(arena.data(), 0, arena.size());
  }
}

Error MethodLoader::load_instructions(Pass pass) {
  for (uint32_t i = 0; i < instructions_at_.count; ++i) {
    ORCH_TRY(load_instruction(i, pass));
  }
  return Error::Ok;
}

/// Checks and decodes an instruction: kernel calls, or in the pass for control
/// all others.
Error MethodLoader::load_instruction(uint32_t index, Pass pass) {
  const FbTable table =
      reader_.item(instructions_at_, index, slot::kInstructions);
  const CallType call_type =
      static_cast<CallType>(reader_.scalar<uint8_t>(table, slot::kArgsType));
  if ((pass == Pass::Control) == (call_type == CallType::Kernel)) {
    return reader_.failed() ? Error::InvalidProgram : Error::Ok;
  }
  const FbTable content = reader_.child(
      table, call_type == CallType::Free ? slot::kArgsFree : slot::kArgs);
  ORCH_CHECK(!reader_.failed() && content.at != 0, Error::InvalidProgram);

  Instruction& instruction = instructions_[index];
  if (call_type == CallType::Kernel) {
    return load_call(content, pass, instruction);
  }
  // If one of these cannot be read it is 0, and what is loaded last notices.
  const int32_t first = reader_.scalar<int32_t>(content, slot::kFirst);
  const int32_t second = reader_.scalar<int32_t>(content, slot::kSecond);
  switch (call_type) {
    case CallType::Delegate:
#if ORCH_DELEGATES
      return load_delegate_call(content, instruction);
#else
      return Error::DelegateMissing;
#endif
    case CallType::Move: {
      ORCH_CHECK(valid(first) && valid(second), Error::InvalidProgram);
      const Value& from = values_[first];
      Value& to = values_[second];
      // Kernels are found for what a value is at load: the kind and, of
      // tensors, dtype and dim order stay. Tensors in a list might differ one
      // by one.
      ORCH_CHECK(from.tag() == to.tag() && from.tag() != Tag::TensorList,
                 Error::InvalidProgram);
      if (to.is_tensor()) {
        ORCH_CHECK(from.tensor().dtype == to.tensor().dtype &&
                       same_layout(from.tensor(), to.tensor()),
                   Error::InvalidProgram);
        // An output of fixed sizes is read where it lies, as far as the API
        // says.
        ORCH_CHECK((to.tensor().flags & Tensor::kDynamic) != 0 ||
                       ((from.tensor().flags & Tensor::kDynamic) == 0 &&
                        same_sizes(from.tensor(), to.tensor())),
                   Error::InvalidProgram);
        // An output would not get there, and a value must not keep a pointer
        // of the caller for later runs.
        ORCH_CHECK(!kCallerIo || ((from.tensor().flags | to.tensor().flags) &
                                  Tensor::kCaller) == 0,
                   Error::UnsupportedProgram);
        to.tensor().flags |= Tensor::kReadOnly;
      }
      instruction.kind = Instruction::Kind::Move;
      instruction.move = {first, second};
      return Error::Ok;
    }
    case CallType::JumpFalse: {
      ORCH_CHECK(valid(first) &&
                     static_cast<uint32_t>(second) <= instructions_at_.count,
                 Error::InvalidProgram);
      const Value& condition = values_[first];
      ORCH_CHECK(condition.tag() == Tag::Bool ||
                     (condition.is_tensor() &&
                      condition.tensor().dtype == ScalarType::Bool &&
                      condition.tensor().numel() == 1),
                 Error::InvalidProgram);
      instruction.kind = Instruction::Kind::JumpFalse;
      instruction.jump = {first, second};
      return Error::Ok;
    }
    case CallType::Free:
      ORCH_CHECK(valid(first) && values_[first].is_tensor(),
                 Error::InvalidProgram);
      instruction.kind = Instruction::Kind::Free;
      return Error::Ok;
    default:  // of a newer ExecuTorch
      return Error::UnsupportedProgram;
  }
}

/// `table`: of the instruction's content. Its arguments count once.
Error MethodLoader::load_call(const FbTable& table, Pass pass,
                              Instruction& instruction) {
  const bool settles = kSettlesResults && pass == Pass::Results;
  const int32_t op_index = reader_.scalar<int32_t>(table, slot::kOpIndex);
  const FbVector at = reader_.vector(table, slot::kCallArgs, 4);
  const int32_t* const args = static_cast<const int32_t*>(reader_.items(at));
  ORCH_CHECK(!reader_.failed() &&
                 static_cast<uint32_t>(op_index) < operators_.count &&
                 at.count != 0 && at.count <= UINT16_MAX,
             Error::InvalidProgram);
  if (settles || !kSettlesResults) ORCH_TRY(spend(at.count));
  for (uint32_t i = 0; i < at.count; ++i) {
    ORCH_CHECK(valid(args[i]), Error::InvalidProgram);
    // Their items are what kernels are found for.
    const Value& value = values_[args[i]];
    if (!settles && value.tag() == Tag::TensorList) {
      ORCH_TRY(spend(value.list().count));
    }
  }
  instruction.kind = Instruction::Kind::Kernel;
  instruction.arg_count = static_cast<uint16_t>(at.count);
  instruction.call.args = args;
  const uint32_t op = static_cast<uint32_t>(op_index);
  uint8_t unknown = 0;
  uint8_t& known = op < sizeof first_kernels_ ? first_kernels_[op] : unknown;
  size_t first = known - size_t{1};
  if (known == 0) {
    const FbTable name = reader_.item(operators_, op, slot::kOperators);
    const Span<const char> base = reader_.text(name, slot::kOpName);
    const Span<const char> overload = reader_.text(name, slot::kOverload);
    ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
    first = find_operator(kernels_, base, overload);
    if (first < UINT8_MAX) known = static_cast<uint8_t>(first + 1);
  }
  const Args call(values_, args, at.count);
  if (settles) {
    if (first < kernels_.size()) settle_result(kernels_[first], call);
    return Error::Ok;
  }
  return find_kernel(kernels_, first, call, instruction.call.function);
}

Error MethodLoader::indices(const FbTable& plan, uint32_t slot,
                            Span<const int32_t>& result) {
  const FbVector at = reader_.vector(plan, slot, 4);
  const int32_t* const items = static_cast<const int32_t*>(reader_.items(at));
  ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
  for (uint32_t i = 0; i < at.count; ++i) {
    ORCH_CHECK(valid(items[i]), Error::InvalidProgram);
    // Callers write inputs where they lie, unless that is their own memory.
    constexpr uint8_t kFixed =
        Tensor::kReadOnly | (kCallerIo ? Tensor::kCaller : 0);
    const Value& value = values_[items[i]];
    ORCH_CHECK(slot != slot::kInputs || !value.is_tensor() ||
                   (value.tensor().flags & kFixed) != Tensor::kReadOnly,
               Error::InvalidProgram);
  }
  result = {items, at.count};
  return Error::Ok;
}

Error load_method(const Program& program, uint32_t method, KernelTable kernels,
                  const MethodMemory& memory, MethodImage& image,
                  size_t& state_used) {
  MethodLoader loader(program, kernels, memory);
  const Error error = loader.load(method, image, state_used);
  return loader.found_newer() ? Error::UnsupportedProgram : error;
}

}  // namespace orch
