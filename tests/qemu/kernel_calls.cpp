// Firmware that carries out every call of a file, whose format is that of
// tests/data/kernels/reference_format.py. Outputs begin with a pattern, not
// with what the file has for them. The response has, per call, two words: the
// error, and the bytes around tensors that changed; then, if there is no error,
// the memory of each output. kernel_firmware.py is the other side; it makes
// kernel_table.h.

#include <stdint.h>
#include <string.h>

#include "kernel_table.h"
#include "orch/kernel.h"
#include "orch/platform.h"

/// Calls a kernel: what tests/speeds counts the instructions of.
extern "C" __attribute__((noinline)) uint32_t orch_carry_out(
    orch::KernelFn kernel, const orch::Args& args) {
  return static_cast<uint32_t>(kernel(args));
}

namespace {

namespace platform = orch::platform;
using orch::Tag;
using orch::Tensor;
using orch::Value;

constexpr uint32_t kMemoryBytes = 192 * 1024;
constexpr uint32_t kGuard = 32;
constexpr uint8_t kPattern = 0xA5;
constexpr uint32_t kMaxArguments = 24;
constexpr uint32_t kMaxTensors = 32;
constexpr uint32_t kMaxItems = 64;
constexpr uint32_t kListBytes = 1024;

// Tensors, each with guards around it.
alignas(16) uint8_t memory[kMemoryBytes];
uint32_t used;

struct Block {
  uint32_t at;
  uint32_t bytes;
  bool is_out;
};
Block blocks[kMaxTensors];
uint32_t block_count;

int32_t sizes[kMaxTensors][orch::kMaxDim + 1];  // after a capacity
uint8_t orders[kMaxTensors][orch::kMaxDim];

// Arguments, then items of lists.
Value values[kMaxArguments + kMaxItems];
uint32_t value_count;
int32_t indices[kMaxArguments];

// What lists point to.
alignas(8) uint8_t lists[kListBytes];
uint32_t list_bytes;

platform::File from;
bool good = true;

void read(void* to, uint32_t bytes) {
  good = good && (bytes == 0 || platform::read(from, to, bytes));
}

template <typename T>
T read_as() {
  T value = {};
  read(&value, sizeof value);
  return value;
}

/// Memory between guards; null if there is none left.
uint8_t* allocate(uint32_t bytes, bool is_out) {
  const uint32_t at = used + kGuard;
  const uint32_t whole = (bytes + 15) & ~15U;
  if (!good || block_count == kMaxTensors || whole > kMemoryBytes ||
      at + whole + kGuard > kMemoryBytes) {
    good = false;
    return nullptr;
  }
  blocks[block_count++] = {at, bytes, is_out};
  used = at + whole + kGuard;
  memset(memory + at - kGuard, kPattern, whole + 2 * kGuard);
  return memory + at;
}

/// A tensor whose items are read; those of an output are what to expect.
Tensor read_tensor(bool is_out) {
  const uint32_t slot = block_count;
  Tensor tensor = {};
  tensor.tag = Tag::Tensor;
  tensor.dtype = static_cast<orch::ScalarType>(read_as<uint8_t>());
  tensor.dim = read_as<uint8_t>();
  uint32_t bytes = static_cast<uint32_t>(orch::item_bytes(tensor.dtype));
  bool contiguous = true;
  if (tensor.dim > orch::kMaxDim || slot >= kMaxTensors) good = false;
  for (int i = 0; good && i < tensor.dim; ++i) {
    sizes[slot][i + 1] = read_as<int32_t>();
    bytes *= static_cast<uint32_t>(sizes[slot][i + 1]);
  }
  for (int i = 0; good && i < tensor.dim; ++i) {
    orders[slot][i] = read_as<uint8_t>();
    contiguous = contiguous && orders[slot][i] == i;
  }
  tensor.flags = contiguous ? Tensor::kContiguous : 0;
  tensor.memory = allocate(bytes, is_out);
  if (!good) return tensor;
  tensor.dims = sizes[slot] + 1;
  tensor.dim_order = orders[slot];
  read(tensor.memory, bytes);
  if (is_out) memset(tensor.memory, kPattern, bytes);
  return tensor;
}

/// Index of a value that is an item of a list.
uint32_t item(const Value& value) {
  if (value_count == kMaxArguments + kMaxItems) {
    good = false;
    return 0;
  }
  values[value_count] = value;
  return value_count++;
}

/// Memory for a list; null if there is none left.
template <typename T>
T* list_of(uint32_t count) {
  constexpr uint32_t kSize = sizeof(T);
  list_bytes = (list_bytes + 7) & ~7U;
  if (!good || count > (kListBytes - list_bytes) / kSize) {
    good = false;
    return nullptr;
  }
  T* const list = reinterpret_cast<T*>(lists + list_bytes);
  list_bytes += count * kSize;
  return list;
}

/// A list of what the file has as it is.
template <typename T>
void read_items(Tag tag, Value& value) {
  const uint32_t count = read_as<uint32_t>();
  T* const list = list_of<T>(count);
  if (good) read(list, count * static_cast<uint32_t>(sizeof(T)));
  value.set_list(tag, list, count);
}

void read_ints(Value& value) {
  const uint32_t count = read_as<uint32_t>();
  orch::IntItem* const list = list_of<orch::IntItem>(count);
  for (uint32_t i = 0; good && i < count; ++i) {
    Value number;
    number.set_int(read_as<int64_t>());
    list[i] = item(number);
  }
  value.set_list(Tag::IntList, list, count);
}

void read_tensors(Value& value, bool are_outs) {
  const uint32_t count = read_as<uint32_t>();
  orch::ValueIndex* const list = list_of<orch::ValueIndex>(count);
  for (uint32_t i = 0; good && i < count; ++i) {
    list[i] = orch::kNoValue;
    if (!are_outs && read_as<uint8_t>() == 0) continue;
    Value tensor;
    tensor.set_tensor(read_tensor(are_outs));
    list[i] = static_cast<orch::ValueIndex>(item(tensor));
  }
  value.set_list(Tag::TensorList, list, count);
}

/// The output in the memory of an argument before it.
void share(Value& value) {
  const uint32_t index = read_as<uint8_t>();
  if (index >= kMaxArguments) good = false;
  if (!good) return;
  value = values[index];
  for (uint32_t b = 0; b < block_count; ++b) {
    Block& block = blocks[b];
    if (memory + block.at == value.tensor().memory) block.is_out = true;
  }
}

void read_argument(Value& value) {
  switch (read_as<uint8_t>()) {
    case 0:
      return value.set_none();
    case 1:
      return value.set_tensor(read_tensor(false));
    case 2:
      return value.set_int(read_as<int64_t>());
    case 3:
      return value.set_double(read_as<double>());
    case 4:
      return value.set_bool(read_as<uint8_t>() != 0);
    case 5:
      return read_ints(value);
    case 6:
      return value.set_tensor(read_tensor(true));
    case 7:
      return read_items<char>(Tag::String, value);
    case 8:
      return read_tensors(value, false);
    case 9:
      return read_tensors(value, true);
    case 10:
      return read_items<double>(Tag::DoubleList, value);
    case 12:
      return read_items<bool>(Tag::BoolList, value);
    case 13:
      return share(value);
    default:
      good = false;
  }
}

uint32_t changed_guards() {
  uint32_t changed = 0;
  for (uint32_t b = 0; b < block_count; ++b) {
    const uint8_t* const before = memory + blocks[b].at - kGuard;
    const uint8_t* const after = memory + blocks[b].at + blocks[b].bytes;
    for (uint32_t i = 0; i < kGuard; ++i) {
      changed += before[i] != kPattern;
      changed += after[i] != kPattern;
    }
  }
  return changed;
}

/// Reads a call and carries it out; its error, 255 if there is no such kernel.
uint32_t call() {
  used = block_count = list_bytes = 0;
  value_count = kMaxArguments;
  char name[256] = {};
  read(name, read_as<uint8_t>());
  read_as<uint64_t>();  // tolerances, which are for the other side
  read_as<uint64_t>();
  const uint32_t count = read_as<uint8_t>();
  if (count > kMaxArguments) good = false;
  for (uint32_t i = 0; good && i < count; ++i) {
    indices[i] = static_cast<int32_t>(i);
    read_argument(values[i]);
  }
  if (!good) return 255;
  for (const auto& entry : kKernels) {
    if (memcmp(entry.name, name, strlen(entry.name) + 1) != 0) continue;
    return orch_carry_out(entry.kernel, {values, indices, count});
  }
  return 255;
}

bool answer(platform::File to, uint32_t error) {
  const uint32_t words[2] = {error, changed_guards()};
  bool written = platform::write(to, words, sizeof words);
  for (uint32_t b = 0; error == 0 && b < block_count; ++b) {
    if (!blocks[b].is_out || blocks[b].bytes == 0) continue;
    written =
        written && platform::write(to, memory + blocks[b].at, blocks[b].bytes);
  }
  return written;
}

}  // namespace

int orch_application(const char* request, const char* response) {
  from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  if (from < 0 || to < 0) return 3;
  read_as<uint64_t>();  // the word the file begins with
  for (uint32_t left = read_as<uint32_t>(); good && left > 0; --left) {
    const uint32_t error = call();
    if (!good || !answer(to, error)) return 4;
  }
  platform::close(from);
  platform::close(to);
  return good ? 0 : 3;
}
