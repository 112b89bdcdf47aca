// The application of `orchestrator run`: carries out the calls of a request
// file and writes what came out to a response file. docs/runner-protocol.md has
// the format.

#include <stdint.h>

#include "orch/model.h"
#include "orch/platform.h"

/// As in executor.cpp.
#ifndef ORCH_TRACE
#define ORCH_TRACE 0
#endif

/// 1 if the product can tell whether flash holds what was linked.
#ifndef ORCH_CHECKS_IMAGE
#define ORCH_CHECKS_IMAGE 0
#endif

/// 1 if an input or output of the product is a list, or an input None or a
/// string: others do not pay for it.
#ifndef ORCH_LISTS
#define ORCH_LISTS 0
#endif

/// 1 if all inputs and outputs of the product are tensors.
#ifndef ORCH_TENSORS_ONLY
#define ORCH_TENSORS_ONLY 0
#endif

#if ORCH_TRACE
#include "trace_hooks.h"
#endif

/// Memory for inputs and outputs that are the caller's; products without such
/// have none of this.
#ifndef ORCH_CALLER_BYTES
#define ORCH_CALLER_BYTES 0
#endif

#if ORCH_CALLER_BYTES
#include "orch/caller.h"
#endif

#if ORCH_GIVEN_ROWS
#include "orch/rows.h"
#endif

namespace orch {

/// All methods of the product, in order of the build. Defined by generated
/// code.
extern const Span<const ModelMethod* const> kModelMethods;

#if ORCH_CHECKS_IMAGE
/// Compares all models with what was linked. Defined by generated code.
Error check_image();
#else
inline Error check_image() { return Error::Ok; }
#endif

namespace {

using platform::File;

#if ORCH_CALLER_BYTES
/// For inputs and outputs that are the caller's; the build knows how many bytes
/// the method takes that has the most.
alignas(16) __attribute__((section(".bss.orch_caller_memory"))) uint8_t
    caller_memory[ORCH_CALLER_BYTES];

size_t capacity(const Tensor& tensor) {
  const bool dynamic = (tensor.flags & Tensor::kDynamic) != 0;
  return dynamic ? static_cast<size_t>(tensor.dims[-1]) : tensor.nbytes();
}

/// Gives each of them its place. False: there is too little memory.
bool give_memory(const ModelMethod& method) {
  const MethodImage& image = image_of(method);
  clear_memory(method);
  size_t used = 0;
  for (size_t i = 0; i < image.inputs.size() + image.outputs.size(); ++i) {
    const uint32_t at = static_cast<uint32_t>(i);
    const uint32_t inputs = static_cast<uint32_t>(image.inputs.size());
    Value& value =
        at < inputs ? input(method, at) : output(method, at - inputs);
    if (!value.is_tensor() || (value.tensor().flags & Tensor::kCaller) == 0 ||
        value.tensor().memory != nullptr) {
      continue;
    }
    const size_t bytes = (capacity(value.tensor()) + 15) / 16 * 16;
    if (bytes > sizeof caller_memory - used) return false;
    if (set_memory(value, caller_memory + used) != Error::Ok) return false;
    used += bytes;
  }
  return true;
}
#else
bool give_memory(const ModelMethod&) { return true; }
#endif

constexpr uint32_t kRequestMagic = 0x3151524FU;  // "ORQ1"
constexpr bool kTraced = ORCH_TRACE != 0;
constexpr uint32_t kResponseMagic = kTraced ? 0x3154524FU   // "ORT1"
                                            : 0x3153524FU;  // "ORS1"
constexpr bool kLists = ORCH_LISTS != 0;
constexpr bool kTensorsOnly = ORCH_TENSORS_ONLY != 0;
constexpr uint32_t kFresh = 1;

enum ExitCode : int {
  kDone = 0,
  kBadRequest = 3,
  kWriteFailed = 4,
  kNoFile = 5,
};

bool read_word(File file, uint32_t& word) {
  return platform::read(file, &word, sizeof word);
}

template <size_t kCount>
bool write_words(File file, const uint32_t (&words)[kCount]) {
  return platform::write(file, words, sizeof words);
}

bool write_word(File file, uint32_t word) { return write_words(file, {word}); }

#if ORCH_TRACE
/// Ticks of one call: of loading, of each instruction, of the whole run.
class CallTrace {
 public:
  /// Begins to load a method for a call that `response` is about.
  void load(File response) {
    response_ = response;
    written_ = true;
    count_ = 0;
    load_ticks_ = 0;
    run_ticks_ = 0;
    begin_ = platform::ticks();
  }
  void loaded() { load_ticks_ = platform::ticks() - begin_; }
  void run() { begin_ = platform::ticks(); }
  void ran() { run_ticks_ = platform::ticks() - begin_; }
  /// What comes before `resume` is no part of the run: reading and writing.
  void pause() { paused_ = platform::ticks(); }
  void resume() { begin_ += platform::ticks() - paused_; }
  /// Reads the clock before or after an instruction.
  uint64_t read_clock() {
    before_ = now_;
    return now_ = platform::ticks();
  }
  /// Between the last two readings; `orch_ticks` may have wrapped.
  void record(uint32_t instruction) {
    if (count_ == kEvents) {
      pause();
      flush();
      resume();
    }
    events_[count_++] = {instruction, now_ - before_};
  }
  /// False: the response cannot be written.
  bool finish() {
    flush();
    return written_ && write_word(response_, UINT32_MAX) &&
           write_ticks(load_ticks_) && write_ticks(run_ticks_);
  }

 private:
  struct Event {
    uint32_t instruction;
    uint64_t ticks;
  };
  // Long methods write in between. Boards have little room beside their arenas.
  static constexpr uint32_t kEvents = sizeof(void*) == 4 ? 16 : 256;

  bool write_ticks(uint64_t ticks) {
    return platform::write(response_, &ticks, sizeof ticks);
  }
  void flush() {
    for (uint32_t i = 0; i < count_; ++i) {
      written_ = written_ && write_word(response_, events_[i].instruction) &&
                 write_ticks(events_[i].ticks);
    }
    count_ = 0;
  }

  File response_ = -1;
  bool written_ = true;
  uint32_t count_ = 0;
  uint64_t begin_ = 0;
  uint64_t load_ticks_ = 0;
  uint64_t run_ticks_ = 0;
  uint64_t paused_ = 0;
  uint64_t before_ = 0;
  uint64_t now_ = 0;
  Event events_[kEvents] = {};
};
#else
struct CallTrace {
  void load(File) {}
  void loaded() {}
  void run() {}
  void ran() {}
  void pause() {}
  void resume() {}
  bool finish() { return true; }
};
#endif

CallTrace call_trace;

bool read_tag(File request, Tag tag) {
  uint32_t word;
  return read_word(request, word) && word == static_cast<uint32_t>(tag);
}

bool read_scalar(File request, Value& value) {
  uint32_t words[2];
  if (!platform::read(request, words, sizeof words)) return false;
  const Scalar scalar{value.tag(), {words[0], words[1]}};
  if (scalar.is_floating()) {
    value.set_double(scalar.to_double());
  } else if (scalar.is_bool()) {
    value.set_bool(scalar.bits() != 0);
  } else {
    value.set_int(scalar.bits());
  }
  return true;
}

/// Reads dtype and sizes of a tensor. False: the request is wrong.
bool read_sizes(File request, Tensor& tensor) {
  uint32_t dim;
  int32_t sizes[kMaxDim];
  return read_word(request, dim) && dim == tensor.dim &&
         platform::read(request, sizes, dim * sizeof sizes[0]) &&
         resize(tensor, {sizes, dim}) == Error::Ok;
}

/// Reads a value that is no list into its place. What a program has fixed comes
/// as its tag alone, and stays. False: the request is wrong.
bool read_value(File request, Value& value) {
  if (!read_tag(request, kTensorsOnly ? Tag::Tensor : value.tag())) {
    return false;
  }
  if (!kTensorsOnly && !value.is_tensor()) {
    if (kLists && !value.is_scalar()) return true;
    return value.is_scalar() && read_scalar(request, value);
  }
  Tensor& tensor = value.tensor();
  if (!read_sizes(request, tensor)) return false;
  const size_t bytes = tensor.nbytes();
  return bytes == 0 || platform::read(request, tensor.memory, bytes);
}

/// Reads one input from the request into its value, or into those of a list.
bool read_input(File request, const ModelMethod& method, Value& value) {
  if (!kLists || value.tag() != Tag::TensorList) {
    return read_value(request, value);
  }
  const List& list = value.list();
  uint32_t count;
  if (!read_tag(request, Tag::TensorList) || !read_word(request, count) ||
      count != list.count) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const bool none = list.tensor_index(i) < 0;
    if (!(none ? read_tag(request, Tag::None)
               : read_value(request, item(method, value, i)))) {
      return false;
    }
  }
  return true;
}

/// Writes a value that is no list.
bool write_value(File response, const Value& value) {
  const uint32_t tag =
      static_cast<uint32_t>(kTensorsOnly ? Tag::Tensor : value.tag());
  if (!kTensorsOnly && value.is_scalar()) {
    const Scalar& scalar = value.scalar();
    return write_words(response, {tag, scalar.words[0], scalar.words[1]});
  }
  if (!kTensorsOnly && value.tag() == Tag::String) {
    const List& text = value.list();
    return write_words(response, {tag, text.count}) &&
           platform::write(response, text.items, text.count);
  }
  if (!kTensorsOnly && !value.is_tensor()) return write_word(response, tag);
  const Tensor& tensor = value.tensor();
  const size_t bytes = tensor.nbytes();
  return write_words(response,
                     {tag, static_cast<uint32_t>(tensor.dtype), tensor.dim}) &&
         platform::write(response, tensor.dims, tensor.dim * sizeof(int32_t)) &&
         (bytes == 0 || platform::write(response, tensor.memory, bytes));
}

bool write_output(File response, const ModelMethod& method, uint32_t index) {
  const Value& value = output(method, index);
  if (!kLists) return write_value(response, value);
  const bool ints = value.tag() == Tag::IntList;
  const bool doubles = value.tag() == Tag::DoubleList;
  const bool tensors = value.tag() == Tag::TensorList;
  if (!ints && !doubles && !tensors && value.tag() != Tag::BoolList) {
    return write_value(response, value);
  }
  const uint32_t count = value.list().count;
  if (!write_words(response, {static_cast<uint32_t>(value.tag()), count})) {
    return false;
  }
  if (!ints && !tensors) {
    return platform::write(response, value.list().items,
                           count * (doubles ? sizeof(double) : 1));
  }
  for (uint32_t i = 0; i < count; ++i) {
    bool written;
    if (ints) {
      const int64_t number = list_int(method, index, i);
      written = platform::write(response, &number, sizeof number);
    } else if (value.list().tensor_index(i) < 0) {
      written = write_word(response, static_cast<uint32_t>(Tag::None));
    } else {
      written = write_value(response, item(method, value, i));
    }
    if (!written) return false;
  }
  return true;
}

#if ORCH_GIVEN_ROWS
/// Whether the input of a method comes by rows; it is the only one.
bool takes_rows(const ModelMethod& method) {
  const StepTable* const steps = image_of(method).steps;
  return steps != nullptr && steps->run != nullptr;
}

/// Runs a method whose input comes by rows, which are read when they are
/// needed. False: the request is wrong.
bool run_rows(File request, const ModelMethod& method) {
  Value& value = input(method, 0);
  if (!read_tag(request, Tag::Tensor) || !read_sizes(request, value.tensor())) {
    return false;
  }
  if (begin_rows(method) != Error::Ok) return false;
  const RowRun& run = *image_of(method).steps->run;
  while (run.room != 0) {
    call_trace.pause();
    if (!platform::read(request, run.to, run.room)) return false;
    call_trace.resume();
    rows_came(method);
  }
  return true;
}
#else
bool takes_rows(const ModelMethod&) { return false; }
bool run_rows(File, const ModelMethod&) { return false; }
#endif

/// What a request says of a call before its inputs.
struct CallHeader {
  uint32_t method;
  uint32_t flags;
  uint32_t inputs;
};

/// Carries out one call. Sets `failed` when the method reported an error, which
/// ends the run: later inputs in the request cannot be placed. In a damaged
/// image, which `intact` tells, no method is loaded.
int run_call(File request, File response, Error intact, bool& failed) {
  CallHeader call;
  if (!platform::read(request, &call, sizeof call) ||
      call.method >= kModelMethods.size()) {
    return kBadRequest;
  }
  if ((call.flags & kFresh) != 0) {
    for (const ModelMethod* method : kModelMethods) unload(*method);
  }
  const ModelMethod& method = *kModelMethods[call.method];
  const bool loads = method.loaded->state_used == 0;
  call_trace.load(response);
  RunStatus status = {intact, UINT32_MAX};
  if (intact == Error::Ok) status.error = prepare(method);
  if (loads) call_trace.loaded();
  const uint32_t state_used = method.loaded->state_used;
  uint32_t outputs = 0;
  if (status.error == Error::Ok) {
    const MethodImage& image = image_of(method);
    if (call.inputs != image.inputs.size() || !give_memory(method)) {
      return kBadRequest;
    }
    const bool by_rows = takes_rows(method);
    for (uint32_t i = 0; i < call.inputs && !by_rows; ++i) {
      if (!read_input(request, method, input(method, i))) {
        return kBadRequest;
      }
    }
    call_trace.run();
    if (by_rows) {
      if (!run_rows(request, method)) return kBadRequest;
    } else {
      status = run(method);
    }
    call_trace.ran();
    outputs = static_cast<uint32_t>(image.outputs.size());
  }
  if (!call_trace.finish()) return kWriteFailed;
  failed = status.error != Error::Ok;
  // Error, instruction it stopped at, bytes of method state; how many outputs
  // follow, if it did not fail.
  const uint32_t words[] = {static_cast<uint32_t>(status.error),
                            status.instruction, state_used, outputs};
  const size_t bytes = failed ? sizeof words - sizeof outputs : sizeof words;
  if (!platform::write(response, words, bytes)) return kWriteFailed;
  for (uint32_t i = 0; !failed && i < outputs; ++i) {
    if (!write_output(response, method, i)) return kWriteFailed;
  }
  return kDone;
}

}  // namespace
}  // namespace orch

#if ORCH_TRACE
extern "C" orch_ticks orch_trace_ticks() {
  return static_cast<orch_ticks>(orch::call_trace.read_clock());
}

extern "C" void orch_trace_record(uint32_t, uint32_t instruction, orch_ticks,
                                  orch_ticks) {
  orch::call_trace.record(instruction);
}
#endif

int orch_application(const char* request_path, const char* response_path) {
  using namespace orch;
  const File request = platform::open_for_reading(request_path);
  const File response = platform::open_for_writing(response_path);
  if (request < 0 || response < 0) return kNoFile;
  uint32_t head[2];  // magic number, count of calls
  if (!platform::read(request, head, sizeof head) || head[0] != kRequestMagic) {
    return kBadRequest;
  }
  if (!write_word(response, kResponseMagic)) return kWriteFailed;
  int code = kDone;
  bool failed = false;
  const Error intact = check_image();
  for (uint32_t i = 0; i < head[1] && code == kDone && !failed; ++i) {
    code = run_call(request, response, intact, failed);
  }
  platform::close(request);
  platform::close(response);
  return code;
}
