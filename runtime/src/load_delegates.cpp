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

bool takes_named(const Delegate& delegate) {
  return kNamedData && delegate.named_data;
}

size_t own_words(const Delegate& delegate) {
  return (delegate.state_bytes + sizeof(StateWord) - 1) / sizeof(StateWord);
}

/// Where named data is looked for: behind the state of each part whose delegate
/// takes some. One size on all targets, which the build knows as well.
struct NamedSource {
  alignas(8) const uint8_t* program;
  uint32_t program_bytes;
  uint32_t external_count;
  alignas(8) const ExternalData* external;
};
static_assert(sizeof(NamedSource) == 24, "selection/resolution.py knows it");

size_t state_words(const Delegate& delegate) {
  return own_words(delegate) +
         (takes_named(delegate) ? sizeof(NamedSource) / sizeof(StateWord) : 0);
}

NamedSource* source_of(const Delegate& delegate, void* state) {
  return reinterpret_cast<NamedSource*>(static_cast<StateWord*>(state) +
                                        own_words(delegate));
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

Error DelegateHandle::named(const char* key, Span<const uint8_t>& data) const {
  return named(Span<const char>(key, strlen(key)), data);
}

Error DelegateHandle::named(Span<const char> key,
                            Span<const uint8_t>& data) const {
  ORCH_CHECK(takes_named(*delegate), Error::NotFound);
  const NamedSource& source = *source_of(*delegate, state);
  Program program;
  ORCH_TRY(Program::open({source.program, source.program_bytes}, program));
  bool found = false;
  Span<const char> name;
  Span<const uint8_t> block;
  for (uint32_t i = 0;; ++i) {
    const Error error = program.named_data(i, name, block);
    if (error == Error::NotFound) break;
    ORCH_TRY(error);
    if (name.size() != key.size()) continue;
    size_t same = 0;
    while (same < key.size() && name[same] == key[same]) ++same;
    if (same != key.size()) continue;
    // Whoever made the program may mean either.
    ORCH_CHECK(!found, Error::InvalidProgram);
    found = true;
    data = block;
  }
  for (uint32_t i = 0; i < source.external_count; ++i) {
    const ExternalData& outside = source.external[i];
    if (!same_text(key, outside.name)) continue;
    ORCH_CHECK(!found, Error::InvalidProgram);
    found = true;
    data = {outside.data, outside.bytes};
  }
  return found ? Error::Ok : Error::NotFound;
}

Error Program::named_data(uint32_t index, Span<const char>& key,
                          Span<const uint8_t>& data) const {
  FbReader reader(bytes_.data(), flatbuffer_size_);
  const FbTable root = reader.root();
  const FbVector blocks = reader.vector(root, slot::kNamedData, 4);
  ORCH_CHECK(!reader.failed(), Error::InvalidProgram);
  ORCH_CHECK(index < blocks.count, Error::NotFound);
  const FbTable block = reader.item(blocks, index, slot::kNamedData);
  key = reader.text(block, slot::kKey);
  const uint32_t at = reader.scalar<uint32_t>(block, slot::kKeySegment);
  ORCH_CHECK(!reader.newer(), Error::UnsupportedProgram);
  ORCH_CHECK(!reader.failed() && reader.field(block, slot::kKey) != 0,
             Error::InvalidProgram);
  return segment(reader, root, at, data);
}

/// The bytes of a segment, in place.
Error Program::segment(FbReader& reader, const FbTable& root, uint32_t index,
                       Span<const uint8_t>& data) const {
  const FbVector blocks = reader.vector(root, slot::kSegments, 4);
  ORCH_CHECK(!reader.failed() && index < blocks.count, Error::InvalidProgram);
  const FbTable block = reader.item(blocks, index, slot::kSegments);
  const uint64_t offset = reader.scalar<uint64_t>(block, slot::kOffset);
  const uint64_t size = reader.scalar<uint64_t>(block, slot::kSize);
  ORCH_CHECK(!reader.newer(), Error::UnsupportedProgram);
  ORCH_CHECK(!reader.failed() && offset <= segment_bytes_ &&
                 size <= segment_bytes_ - offset,
             Error::InvalidProgram);
  data = {bytes_.data() + segment_base_ + offset, static_cast<size_t>(size)};
  return Error::Ok;
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
  bool any_named = false;
  for (uint32_t i = 0; i < delegates_at_.count; ++i) {
    DelegateHandle handle;
    CompileSpecs specs;
    ORCH_TRY(find_handle(i, handle, specs));
    ORCH_TRY(spend(specs.count()));
    any_named = any_named || takes_named(*handle.delegate);
    sizes.take<StateWord>(state_words(*handle.delegate));
    // A table may be listed again and again.
    ORCH_CHECK(sizes.used() <= INT32_MAX, Error::InvalidProgram);
  }
  Span<const char> key;
  Span<const uint8_t> data;
  for (uint32_t i = 0; any_named; ++i) {
    const Error error = program_.named_data(i, key, data);
    if (error == Error::NotFound) break;
    ORCH_TRY(error);
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
  const uint8_t* const base = program_.bytes_.data();
  if (location == 0) {  // inside the flatbuffer
    const FbVector blocks = reader_.vector(root_, slot::kDelegateData, 4);
    ORCH_CHECK(!reader_.failed() && at < blocks.count, Error::InvalidProgram);
    const FbVector bytes = reader_.vector(
        reader_.item(blocks, at, slot::kDelegateData), slot::kInlineBytes, 1);
    ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
    handle.processed = {base + bytes.at, bytes.count};
  } else {
    ORCH_TRY(program_.segment(reader_, root_, at, handle.processed));
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
    if (takes_named(*handle.delegate)) {
      NamedSource& source = *source_of(*handle.delegate, state);
      source.program = program_.bytes_.data();
      source.program_bytes = static_cast<uint32_t>(program_.bytes_.size());
#if ORCH_EXTERNAL_DATA
      source.external_count = static_cast<uint32_t>(memory_.external.size());
      source.external = memory_.external.data();
#endif
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
