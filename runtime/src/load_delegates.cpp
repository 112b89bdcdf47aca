// Loading the delegates of a method: which code runs them, where their bytes
// and their state are. Only products that have delegates compile this.

#include <string.h>

#include "method_loader.h"

#if ORCH_DELEGATES

namespace orch {
namespace {

/// The unit in which state is handed out.
struct alignas(kDelegateStateAlignment) StateWord {
  uint8_t bytes[kDelegateStateAlignment];
};

size_t state_words(const Delegate& delegate) {
  return (delegate.state_bytes + sizeof(StateWord) - 1) / sizeof(StateWord);
}

bool same_text(Span<const char> text, const char* name) {
  for (const char c : text) {
    if (*name == '\0' || *name != c) return false;
    ++name;
  }
  return *name == '\0';
}

const Delegate* find_delegate(Span<const char> backend) {
  for (const Delegate& delegate : kRegisteredDelegates) {
    if (same_text(backend, delegate.backend)) return &delegate;
  }
  return nullptr;
}

}  // namespace

CompileSpec CompileSpecs::operator[](uint32_t index) const {
  FbReader reader(program_, program_bytes_);
  const FbTable table = reader.item({at_, count_}, index, slot::kCompileSpecs);
  const FbVector value = reader.vector(table, slot::kSpecValue, 1);
  return {reader.text(table, slot::kSpecKey),
          {program_ + value.at, value.count}};
}

Error CompileSpecs::find(const char* key, Span<const uint8_t>& value) const {
  for (uint32_t i = 0; i < count_; ++i) {
    const CompileSpec spec = (*this)[i];
    if (same_text(spec.key, key)) {
      value = spec.value;
      return Error::Ok;
    }
  }
  return Error::NotFound;
}

/// Makes room for the handles of the plan's delegates.
Error MethodLoader::count_delegates(const FbTable& plan) {
  delegates_at_ = reader_.vector(plan, slot::kDelegates, 4);
  ORCH_CHECK(!reader_.failed() && delegates_at_.count <= kMaxCount,
             Error::InvalidProgram);
  handles_ = state_.take<DelegateHandle>(delegates_at_.count);
  return Error::Ok;
}

/// Adds the states of all delegates to what a method needs.
Error MethodLoader::count_delegate_states(Bump& sizes) {
  for (uint32_t i = 0; i < delegates_at_.count; ++i) {
    DelegateHandle handle;
    CompileSpecs specs;
    ORCH_TRY(find_handle(i, handle, specs));
    ORCH_TRY(spend(specs.count()));
    sizes.take<StateWord>(state_words(*handle.delegate));
    // A table may be listed again and again.
    ORCH_CHECK(sizes.used() <= INT32_MAX, Error::InvalidProgram);
  }
  return Error::Ok;
}

/// Checks what the program says of a delegate, and finds the code for it.
[[gnu::noinline]] Error MethodLoader::find_handle(uint32_t index,
                                                  DelegateHandle& handle,
                                                  CompileSpecs& specs) {
  const FbTable table = reader_.item(delegates_at_, index, slot::kDelegates);
  const Span<const char> backend = reader_.text(table, slot::kDelegateId);
  const FbTable place = reader_.child(table, slot::kProcessed);
  const int8_t location = reader_.scalar<int8_t>(place, slot::kDataLocation);
  const uint32_t at = reader_.scalar<uint32_t>(place, slot::kDataIndex);
  const FbVector settings = reader_.vector(table, slot::kCompileSpecs, 4);
  ORCH_CHECK(!reader_.failed() && backend.size() != 0 && place.at != 0 &&
                 (location == 0 || location == 1),
             Error::InvalidProgram);
  for (uint32_t i = 0; i < settings.count; ++i) {
    const FbTable spec = reader_.item(settings, i, slot::kCompileSpecs);
    (void)reader_.text(spec, slot::kSpecKey);
    (void)reader_.vector(spec, slot::kSpecValue, 1);
    ORCH_CHECK(!reader_.failed() && reader_.field(spec, slot::kSpecKey) != 0,
               Error::InvalidProgram);
  }
  const bool is_inline = location == 0;
  const uint32_t list = is_inline ? slot::kDelegateData : slot::kSegments;
  const FbVector blocks = reader_.vector(root_, list, 4);
  ORCH_CHECK(!reader_.failed() && at < blocks.count, Error::InvalidProgram);
  const FbTable block = reader_.item(blocks, at, list);
  const uint8_t* const base = program_.bytes_.data();
  if (is_inline) {
    const FbVector bytes = reader_.vector(block, slot::kInlineBytes, 1);
    ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
    handle.processed = {base + bytes.at, bytes.count};
  } else {
    const uint64_t offset = reader_.scalar<uint64_t>(block, slot::kOffset);
    const uint64_t size = reader_.scalar<uint64_t>(block, slot::kSize);
    ORCH_CHECK(!reader_.failed() && offset <= program_.segment_bytes_ &&
                   size <= program_.segment_bytes_ - offset,
               Error::InvalidProgram);
    handle.processed = {base + program_.segment_base_ + offset,
                        static_cast<size_t>(size)};
  }
  handle.delegate = find_delegate(backend);
  handle.state = nullptr;
  ORCH_CHECK(handle.delegate != nullptr, Error::DelegateMissing);
  specs.program_ = base;
  specs.program_bytes_ = program_.flatbuffer_size_;
  specs.at_ = settings.at;
  specs.count_ = settings.count;
  return Error::Ok;
}

/// Gives every delegate its handle and its state, for which the room was
/// counted, and calls its `init`: all of the method has been checked.
Error MethodLoader::start_delegates() {
  for (uint32_t i = 0; i < delegates_at_.count; ++i) {
    CompileSpecs specs;
    ORCH_TRY(find_handle(i, handles_[i], specs));
    DelegateHandle& handle = handles_[i];
    const size_t words = state_words(*handle.delegate);
    StateWord* const state = state_.take<StateWord>(words);
    if (words != 0) {
      memset(state, 0, words * sizeof(StateWord));
      handle.state = state;
    }
    ORCH_TRY(handle.delegate->init(handle, specs));
  }
  return Error::Ok;
}

Error MethodLoader::load_delegate_call(const FbTable& table,
                                       Instruction& instruction) {
  const int32_t index = reader_.scalar<int32_t>(table, slot::kOpIndex);
  const FbVector at = reader_.vector(table, slot::kCallArgs, 4);
  const int32_t* const args = static_cast<const int32_t*>(reader_.items(at));
  ORCH_CHECK(!reader_.failed() &&
                 static_cast<uint32_t>(index) < delegates_at_.count &&
                 at.count != 0 && at.count <= UINT16_MAX,
             Error::InvalidProgram);
  ORCH_TRY(spend(at.count));
  for (uint32_t i = 0; i < at.count; ++i) {
    ORCH_CHECK(valid(args[i]), Error::InvalidProgram);
  }
  instruction.kind = Instruction::Kind::Delegate;
  instruction.arg_count = static_cast<uint16_t>(at.count);
  instruction.delegate = {&handles_[index], args};
  return Error::Ok;
}

}  // namespace orch

#endif  // ORCH_DELEGATES
