// Loading a method: untrusted program bytes in, a checked MethodImage out.

#include <string.h>

#include "flatbuffer.h"
#include "orch/loader.h"

namespace orch {
namespace {

/// Values of the KernelTypes union. Source: ExecuTorch schema/program.fbs.
enum class ValueType : uint8_t {
  Null = 1,
  Int,
  Bool,
  Double,
  Tensor,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
};

/// Values of the InstructionArguments union.
enum class CallType : uint8_t {
  Kernel = 1,
  Delegate,
  Move,
  JumpFalse,
  Free,
};

/// What the lists of a program become, by type from String on.
struct ListKind {
  Tag tag;
  uint8_t item_bytes;
};
constexpr ListKind kListKinds[] = {
    {Tag::String, 1},   {Tag::IntList, 8},    {Tag::DoubleList, 8},
    {Tag::BoolList, 1}, {Tag::TensorList, 4}, {Tag::TensorList, 4},
};

/// Of values, and of instructions: their size in bytes fits 32 bits.
constexpr uint32_t kMaxCount = 1U << 24;

/// Hands out parts of a block, and counts on when the block is full.
class Bump {
 public:
  explicit Bump(Span<uint8_t> block) : block_(block) {}

  template <typename T>
  T* take(size_t count) {
    static_assert(alignof(T) <= kStateAlignment, "state alignment");
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    const size_t at = used_;
    used_ += count * sizeof(T);
    return fits() ? reinterpret_cast<T*>(block_.data() + at) : nullptr;
  }
  size_t used() const { return used_; }
  bool fits() const { return used_ <= block_.size(); }

 private:
  Span<uint8_t> block_;
  size_t used_ = 0;
};

/// Letter of a kernel signature for each tag.
constexpr char kLetters[] = "NTIDBCJEAL";

constexpr bool has_letter(Tag tag, char letter) {
  return kLetters[static_cast<size_t>(tag)] == letter;
}
static_assert(has_letter(Tag::Tensor, 'T') && has_letter(Tag::Int, 'I') &&
                  has_letter(Tag::Double, 'D') && has_letter(Tag::Bool, 'B') &&
                  has_letter(Tag::String, 'C') &&
                  has_letter(Tag::IntList, 'J') &&
                  has_letter(Tag::DoubleList, 'E') &&
                  has_letter(Tag::BoolList, 'A') &&
                  has_letter(Tag::TensorList, 'L'),
              "letters are in the order of the tags");

constexpr char kSmall = 'a' - 'A';

/// Whether the kind of a value fits the letter of a signature.
bool accepts(char letter, const Value& value) {
  if (letter >= 'a') letter = static_cast<char>(letter - kSmall);
  if (letter == 'S') return value.is_scalar();
  if (letter == 'O') letter = 'L';
  return has_letter(value.tag(), letter);
}

/// Compares "namespace::base" and overload of a program with
/// "namespace::base.out".
bool same_name(const char* name, Span<const char> base,
               Span<const char> overload) {
  for (const char c : base) {
    if (*name != c || c == '\0') return false;
    ++name;
  }
  if (!overload.empty()) {
    if (*name != '.') return false;
    ++name;
  }
  for (const char c : overload) {
    if (*name != c || c == '\0') return false;
    ++name;
  }
  return *name == '\0';
}

/// Consumes the kernel key entry of one tensor, "6;0,1"; null if it differs.
const char* match_key_entry(const char* key, const Tensor& tensor) {
  unsigned dtype = 0;
  while (*key >= '0' && *key <= '9') {
    dtype = dtype * 10 + static_cast<unsigned>(*key++ - '0');
  }
  if (dtype != static_cast<unsigned>(tensor.dtype) || *key++ != ';')
    return nullptr;
  for (int i = 0; i < tensor.dim; ++i) {
    // Ranks are below 10: one digit for each dimension.
    if (i != 0 && *key++ != ',') return nullptr;
    if (*key++ != static_cast<char>('0' + tensor.order[i])) return nullptr;
  }
  return key;
}

}  // namespace

class MethodLoader {
 public:
  MethodLoader(const Program& program, KernelTable kernels,
               const MethodMemory& memory)
      : program_(program),
        kernels_(kernels),
        memory_(memory),
        state_(memory.state),
        reader_(program.bytes_.data(), program.flatbuffer_size_) {}

  Error load(uint32_t method, MethodImage& image, size_t& state_used);

 private:
  Error count_dynamic(size_t& words);
  Error load_value(uint32_t index);
  Error load_tensor(const FbTable& table, Value& value);
  Error locate(const FbTable& table, Tensor& tensor, size_t bytes);
  Error constant(uint32_t buffer, size_t bytes, const uint8_t*& data);
  Error subsegment(const FbTable& offsets, uint32_t index, size_t bytes,
                   const uint8_t*& data);
  Error check_lists() const;
  Error load_instruction(uint32_t index, bool kernels);
  Error load_call(const FbTable& table, Instruction& instruction);
  Error find_kernel(uint32_t op_index, const Args& args, KernelFn& function);
  bool matches(const Kernel& kernel, const Args& args, Error& why) const;
  bool matches_key(const char* key, const Args& args) const;
  Error indices(const FbTable& plan, uint32_t slot,
                Span<const int32_t>& result);
  bool valid(int64_t value) const {
    return value >= 0 && value < values_count_;
  }

  const Program& program_;
  const KernelTable kernels_;
  const MethodMemory& memory_;
  Bump state_;
  FbReader reader_;
  FbTable root_;
  FbVector values_at_;
  FbVector operators_;
  FbVector instructions_at_;
  FbVector buffer_sizes_;
  Value* values_ = nullptr;
  int64_t values_count_ = 0;
  Instruction* instructions_ = nullptr;
};

Error MethodLoader::load(uint32_t method, MethodImage& image,
                         size_t& state_used) {
  state_used = 0;
  ORCH_CHECK(
      reinterpret_cast<uintptr_t>(memory_.state.data()) % kStateAlignment == 0,
      Error::Misaligned);
  root_ = reader_.table(program_.root_);
  const FbVector plans = reader_.vector(root_, slot::kExecutionPlan, 4);
  ORCH_CHECK(method < plans.count, Error::NotFound);
  const FbTable plan = reader_.item(plans, method);
  values_at_ = reader_.vector(plan, slot::kValues, 4);
  operators_ = reader_.vector(plan, slot::kOperators, 4);
  buffer_sizes_ = reader_.vector(plan, slot::kBufferSizes, 8);
  const FbVector chains = reader_.vector(plan, slot::kChains, 4);
  (void)reader_.text(plan, slot::kName);
  ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
  // The exporter writes one chain; jumps are relative to it.
  ORCH_CHECK(chains.count == 1, Error::UnsupportedProgram);
  instructions_at_ =
      reader_.vector(reader_.item(chains, 0), slot::kInstructions, 4);
  ORCH_CHECK(
      values_at_.count <= kMaxCount && instructions_at_.count <= kMaxCount,
      Error::InvalidProgram);
  size_t dynamic_words = 0;
  ORCH_TRY(count_dynamic(dynamic_words));

  values_count_ = values_at_.count;
  values_ = state_.take<Value>(values_at_.count);
  instructions_ = state_.take<Instruction>(instructions_at_.count);
  Bump sizes = state_;
  sizes.take<int32_t>(dynamic_words);
  state_used = sizes.used();
  ORCH_CHECK(sizes.fits(), Error::StateTooSmall);

  for (uint32_t i = 0; i < values_at_.count; ++i) ORCH_TRY(load_value(i));
  ORCH_TRY(check_lists());
  // Moves first: they decide which values may come to alias a constant.
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < instructions_at_.count; ++i) {
      ORCH_TRY(load_instruction(i, pass == 1));
    }
  }
  ORCH_TRY(indices(plan, slot::kInputs, image.inputs));
  ORCH_TRY(indices(plan, slot::kOutputs, image.outputs));
  image.values = {values_, values_at_.count};
  image.instructions = {instructions_, instructions_at_.count};
  return Error::Ok;
}

/// Words of state for the capacity and sizes of tensors whose sizes may change.
Error MethodLoader::count_dynamic(size_t& words) {
  for (uint32_t i = 0; i < values_at_.count; ++i) {
    const FbTable table = reader_.item(values_at_, i);
    if (reader_.scalar<uint8_t>(table, slot::kValType) !=
        static_cast<uint8_t>(ValueType::Tensor)) {
      continue;
    }
    const FbTable tensor = reader_.child(table, slot::kVal);
    if (reader_.scalar<int8_t>(tensor, slot::kDynamism) != 0) {
      // What has more dimensions will be refused; here it must not overflow.
      const uint32_t dim = reader_.vector(tensor, slot::kSizes, 4).count;
      words += 1 + (dim < kMaxDim ? dim : kMaxDim);
    }
  }
  return reader_.failed() ? Error::InvalidProgram : Error::Ok;
}

Error MethodLoader::load_value(uint32_t index) {
  const FbTable table = reader_.item(values_at_, index);
  const uint8_t type = reader_.scalar<uint8_t>(table, slot::kValType);
  const FbTable content = reader_.child(table, slot::kVal);
  ORCH_CHECK(!reader_.failed() && content.at != 0, Error::InvalidProgram);
  Value& value = values_[index];
  switch (static_cast<ValueType>(type)) {
    case ValueType::Null:
      value.set_none();
      break;
    case ValueType::Int:
      value.set_int(reader_.scalar<int64_t>(content, 0));
      break;
    case ValueType::Bool:
      value.set_bool(reader_.scalar<uint8_t>(content, 0) != 0);
      break;
    case ValueType::Double:
      value.set_double(reader_.scalar<double>(content, 0));
      break;
    case ValueType::Tensor:
      ORCH_TRY(load_tensor(content, value));
      break;
    case ValueType::String:
    case ValueType::IntList:
    case ValueType::DoubleList:
    case ValueType::BoolList:
    case ValueType::TensorList:
    case ValueType::OptionalTensorList: {
      const ListKind kind =
          kListKinds[type - static_cast<uint8_t>(ValueType::String)];
      const FbVector list = reader_.vector(content, 0, kind.item_bytes);
      value.set_list(kind.tag, reader_.items(list, kind.item_bytes),
                     list.count);
      break;
    }
    default:
      return Error::InvalidProgram;
  }
  return reader_.failed() ? Error::InvalidProgram : Error::Ok;
}

Error MethodLoader::load_tensor(const FbTable& table, Value& value) {
  const FbVector sizes = reader_.vector(table, slot::kSizes, 4);
  const FbVector order = reader_.vector(table, slot::kDimOrder, 1);
  Tensor tensor{};
  tensor.tag = Tag::Tensor;
  tensor.dtype = static_cast<ScalarType>(
      reader_.scalar<uint8_t>(table, slot::kScalarType));
  tensor.dims = static_cast<const int32_t*>(reader_.items(sizes, 4));
  tensor.order = static_cast<const uint8_t*>(reader_.items(order, 1));
  const int8_t dynamism = reader_.scalar<int8_t>(table, slot::kDynamism);
  ORCH_CHECK(!reader_.failed() && sizes.count == order.count,
             Error::InvalidProgram);
  ORCH_CHECK(sizes.count <= kMaxDim, Error::UnsupportedProgram);
  ORCH_CHECK(reader_.scalar<int32_t>(table, slot::kStorageOffset) == 0 &&
                 reader_.scalar<int8_t>(table, slot::kLayout) == 0,
             Error::UnsupportedProgram);
  ORCH_CHECK(dynamism >= 0 && dynamism <= 2, Error::InvalidProgram);
  tensor.dim = static_cast<uint8_t>(sizes.count);

  const size_t item = item_bytes(tensor.dtype);
  ORCH_CHECK(item != 0, Error::UnsupportedProgram);
  // Below 2^31 bytes even with empty dimensions counted as 1, so that no
  // kernel's arithmetic on sizes and strides can overflow.
  uint64_t bound = item;
  bool empty = false;
  unsigned seen = 0;
  bool identity = true;
  for (int i = 0; i < tensor.dim; ++i) {
    // A negative size counts as one that is too large.
    const uint32_t size = static_cast<uint32_t>(tensor.dims[i]);
    empty |= size == 0;
    bound *= size == 0 ? 1U : size;
    ORCH_CHECK(bound <= INT32_MAX, Error::InvalidProgram);
    const unsigned dim = tensor.order[i];
    ORCH_CHECK(dim < tensor.dim, Error::InvalidProgram);
    seen |= 1U << dim;
    identity = identity && dim == static_cast<unsigned>(i);
  }
  ORCH_CHECK(seen + 1 == 1U << tensor.dim, Error::InvalidProgram);
  if (identity) tensor.flags |= Tensor::kContiguous;

  const size_t bytes = empty ? 0 : static_cast<size_t>(bound);
  ORCH_TRY(locate(table, tensor, bytes));
  if (dynamism != 0) {
    int32_t* const words = state_.take<int32_t>(1 + sizes.count);
    words[0] = static_cast<int32_t>(bytes);
    memcpy(words + 1, tensor.dims, sizes.count * sizeof(int32_t));
    tensor.dims = words + 1;
    tensor.flags |= Tensor::kDynamic;
  }
  value.set_tensor(tensor);
  return Error::Ok;
}

/// Finds the memory of a tensor: in an arena, or in the program if it is
/// constant.
Error MethodLoader::locate(const FbTable& table, Tensor& tensor, size_t bytes) {
  const uint32_t buffer = reader_.scalar<uint32_t>(table, slot::kDataBuffer);
  const FbTable allocation = reader_.child(table, slot::kAllocation);
  const FbTable extra = reader_.child(table, slot::kExtra);
  const uint8_t location = reader_.scalar<uint8_t>(extra, slot::kLocation);
  ORCH_CHECK(!reader_.failed() && location <= 1, Error::InvalidProgram);
  ORCH_CHECK(location == 0,
             Error::UnsupportedProgram);  // data outside the program

  const size_t align = item_bytes(tensor.dtype);
  if (allocation.at == 0) {
    // Without a buffer it is an input or output in the caller's memory.
    ORCH_CHECK(buffer != 0 || bytes == 0, Error::UnsupportedProgram);
    const uint8_t* data = program_.bytes_.data();
    if (buffer != 0) ORCH_TRY(constant(buffer, bytes, data));
    ORCH_CHECK(reinterpret_cast<uintptr_t>(data) % align == 0,
               Error::InvalidProgram);
    tensor.memory = const_cast<uint8_t*>(data);  // kReadOnly guards it
    tensor.flags |= Tensor::kReadOnly;
    return Error::Ok;
  }

  const uint32_t id = reader_.scalar<uint32_t>(allocation, slot::kMemoryId);
  const uint32_t high = reader_.scalar<uint32_t>(allocation, slot::kOffsetHigh);
  const uint32_t offset =
      reader_.scalar<uint32_t>(allocation, slot::kOffsetLow);
  ORCH_CHECK(id != 0 && id < buffer_sizes_.count && high == 0,
             Error::InvalidProgram);
  const int64_t planned = reader_.read<int64_t>(buffer_sizes_.at + 8 * id);
  ORCH_CHECK(planned <= INT32_MAX && offset <= planned &&
                 bytes <= static_cast<uint64_t>(planned) - offset,
             Error::InvalidProgram);
  ORCH_CHECK(id <= memory_.arenas.size() && static_cast<uint64_t>(planned) <=
                                                memory_.arenas[id - 1].size(),
             Error::ArenaTooSmall);
  uint8_t* const arena = memory_.arenas[id - 1].data();
  ORCH_CHECK(reinterpret_cast<uintptr_t>(arena) % kArenaAlignment == 0,
             Error::Misaligned);
  ORCH_CHECK(offset % align == 0, Error::InvalidProgram);
  tensor.memory = arena + offset;

  if (buffer != 0) {  // mutable buffer with an initial state
    const FbVector segments =
        reader_.vector(root_, slot::kMutableDataSegments, 4);
    const uint64_t segment =
        reader_.scalar<uint64_t>(extra, slot::kMutableSegment);
    ORCH_CHECK(!reader_.failed() && segment < segments.count,
               Error::InvalidProgram);
    const uint8_t* data = nullptr;
    ORCH_TRY(subsegment(reader_.item(segments, static_cast<uint32_t>(segment)),
                        buffer, bytes, data));
    if (bytes != 0) memcpy(tensor.memory, data, bytes);
  }
  return Error::Ok;
}

Error MethodLoader::constant(uint32_t buffer, size_t bytes,
                             const uint8_t*& data) {
  return subsegment(reader_.child(root_, slot::kConstantSegment), buffer, bytes,
                    data);
}

/// Finds entry `index` of a segment that is cut into pieces by a list of
/// offsets.
Error MethodLoader::subsegment(const FbTable& offsets, uint32_t index,
                               size_t bytes, const uint8_t*& data) {
  const uint32_t segment_index =
      reader_.scalar<uint32_t>(offsets, slot::kSegmentIndex);
  const FbVector starts = reader_.vector(offsets, slot::kOffsets, 8);
  const FbVector segments = reader_.vector(root_, slot::kSegments, 4);
  ORCH_CHECK(!reader_.failed() && index < starts.count &&
                 segment_index < segments.count,
             Error::InvalidProgram);
  const FbTable segment = reader_.item(segments, segment_index);
  const uint64_t base = reader_.scalar<uint64_t>(segment, slot::kOffset);
  const uint64_t size = reader_.scalar<uint64_t>(segment, slot::kSize);
  const uint64_t start = reader_.read<uint64_t>(starts.at + 8 * index);
  ORCH_CHECK(!reader_.failed() && base <= program_.segment_bytes_ &&
                 size <= program_.segment_bytes_ - base && start <= size &&
                 bytes <= size - start,
             Error::InvalidProgram);
  data = program_.bytes_.data() + program_.segment_base_ + base + start;
  return Error::Ok;
}

/// Items of lists must name values of the right kind.
Error MethodLoader::check_lists() const {
  for (int64_t i = 0; i < values_count_; ++i) {
    if (values_[i].tag() != Tag::IntList &&
        values_[i].tag() != Tag::TensorList) {
      continue;
    }
    const List& list = values_[i].list();
    for (uint32_t k = 0; k < list.count; ++k) {
      if (list.tag == Tag::IntList) {
        const int64_t at = static_cast<const int64_t*>(list.items)[k];
        ORCH_CHECK(valid(at) && values_[at].tag() == Tag::Int,
                   Error::InvalidProgram);
      } else {
        const int32_t at = static_cast<const int32_t*>(list.items)[k];
        ORCH_CHECK(at == -1 || (valid(at) && (values_[at].is_tensor() ||
                                              values_[at].is_none())),
                   Error::InvalidProgram);
      }
    }
  }
  return Error::Ok;
}

/// Checks and decodes an instruction: kernel calls if `kernels`, else all
/// others.
Error MethodLoader::load_instruction(uint32_t index, bool kernels) {
  const FbTable table = reader_.item(instructions_at_, index);
  const uint8_t type = reader_.scalar<uint8_t>(table, slot::kArgsType);
  const FbTable content = reader_.child(table, slot::kArgs);
  ORCH_CHECK(!reader_.failed() && content.at != 0, Error::InvalidProgram);
  const CallType call_type = static_cast<CallType>(type);
  if (kernels != (call_type == CallType::Kernel)) return Error::Ok;

  // If one of these cannot be read it is 0, and what is loaded last notices.
  Instruction& instruction = instructions_[index];
  const int32_t first = reader_.scalar<int32_t>(content, slot::kFirst);
  const int32_t second = reader_.scalar<int32_t>(content, slot::kSecond);
  switch (call_type) {
    case CallType::Kernel:
      return load_call(content, instruction);
    case CallType::Delegate:
      return Error::DelegateMissing;
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
  }
  return Error::InvalidProgram;
}

Error MethodLoader::load_call(const FbTable& table, Instruction& instruction) {
  const int32_t op_index = reader_.scalar<int32_t>(table, slot::kOpIndex);
  const FbVector at = reader_.vector(table, slot::kCallArgs, 4);
  const int32_t* const args = static_cast<const int32_t*>(reader_.items(at, 4));
  ORCH_CHECK(!reader_.failed() &&
                 static_cast<uint32_t>(op_index) < operators_.count &&
                 at.count != 0 && at.count <= UINT16_MAX,
             Error::InvalidProgram);
  for (uint32_t i = 0; i < at.count; ++i) {
    ORCH_CHECK(valid(args[i]), Error::InvalidProgram);
  }
  instruction.kind = Instruction::Kind::Kernel;
  instruction.arg_count = static_cast<uint16_t>(at.count);
  instruction.call.args = args;
  return find_kernel(static_cast<uint32_t>(op_index), {values_, args, at.count},
                     instruction.call.function);
}

/// The first entry of the table that serves the call. If there is none, the
/// error says how near the nearest came.
Error MethodLoader::find_kernel(uint32_t op_index, const Args& args,
                                KernelFn& function) {
  const FbTable op = reader_.item(operators_, op_index);
  const Span<const char> base = reader_.text(op, slot::kOpName);
  const Span<const char> overload = reader_.text(op, slot::kOverload);
  ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
  Error why = Error::OperatorMissing;
  for (const Kernel& kernel : kernels_) {
    if (same_name(kernel.name, base, overload) && matches(kernel, args, why)) {
      function = kernel.function;
      return Error::Ok;
    }
  }
  return why;
}

/// Whether a kernel of the right name serves a call: kinds, dtypes and kernel
/// key.
bool MethodLoader::matches(const Kernel& kernel, const Args& args,
                           Error& why) const {
  why = Error::InvalidProgram;
  bool selected = true;
  uint32_t index = 0;
  for (const char* letter = kernel.signature; *letter != '\0'; ++letter) {
    if (*letter == '>' || *letter == '?') continue;
    if (index == args.count()) return false;
    const int at = static_cast<int>(index++);
    const Value& value = args.value(at);
    if (letter[1] == '?' && value.is_none()) continue;
    if (!accepts(*letter, value)) return false;
    const bool is_list = value.tag() == Tag::TensorList;
    const uint32_t count = is_list ? value.list().count : value.is_tensor();
    for (uint32_t k = 0; k < count; ++k) {
      const Tensor* const tensor =
          is_list ? args.tensor_list(at)[static_cast<int>(k)] : &value.tensor();
      if (tensor == nullptr) {
        if (*letter != 'O') return false;
        continue;
      }
      const bool writes = *letter >= 'a';
      if (writes && (tensor->flags & Tensor::kReadOnly) != 0) return false;
      selected = selected && kernel.dtypes.has(tensor->dtype);
    }
  }
  why = Error::DtypeNotSelected;
  return selected && (kernel.key == nullptr || matches_key(kernel.key, args));
}

/// Compares a kernel key with the tensors of a call: `v1/6;0,1|6;0,1`. A tensor
/// list counts as the first tensor in it, a missing tensor not at all.
bool MethodLoader::matches_key(const char* key, const Args& args) const {
  key += 2;  // "v1"
  bool first = true;
  for (uint32_t i = 0; i < args.count(); ++i) {
    const Value& value = args.value(static_cast<int>(i));
    const Tensor* tensor = nullptr;
    if (value.is_tensor()) {
      tensor = &value.tensor();
    } else if (value.tag() == Tag::TensorList) {
      const TensorList list = args.tensor_list(static_cast<int>(i));
      for (int k = 0; k < list.size() && tensor == nullptr; ++k)
        tensor = list[k];
    }
    if (tensor == nullptr) continue;
    if (*key++ != (first ? '/' : '|')) return false;
    key = match_key_entry(key, *tensor);
    if (key == nullptr) return false;
    first = false;
  }
  return *key == '\0';
}

Error MethodLoader::indices(const FbTable& plan, uint32_t slot,
                            Span<const int32_t>& result) {
  const FbVector at = reader_.vector(plan, slot, 4);
  const int32_t* const items =
      static_cast<const int32_t*>(reader_.items(at, 4));
  ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
  for (uint32_t i = 0; i < at.count; ++i) {
    ORCH_CHECK(valid(items[i]), Error::InvalidProgram);
    // Callers write inputs where they lie.
    const Value& value = values_[items[i]];
    ORCH_CHECK(slot != slot::kInputs || !value.is_tensor() ||
                   (value.tensor().flags & Tensor::kReadOnly) == 0,
               Error::InvalidProgram);
  }
  result = {items, at.count};
  return Error::Ok;
}

Error load_method(const Program& program, uint32_t method, KernelTable kernels,
                  const MethodMemory& memory, MethodImage& image,
                  size_t& state_used) {
  return MethodLoader(program, kernels, memory).load(method, image, state_used);
}

}  // namespace orch
