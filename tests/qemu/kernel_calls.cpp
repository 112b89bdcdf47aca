// Firmware that carries out every call of a file and compares what kernels
// write with what they should: tests/data/cortex_m/calls.bin, whose format is
// that of tests/data/kernels/reference_format.py. The response has three words
// per call: the error, the wrong items of the output, and the bytes around
// tensors that changed. test_kernel_calls.py is the other side; it makes
// kernel_table.h.

#include <stdint.h>
#include <string.h>

#include "kernel_table.h"
#include "orch/kernel.h"
#include "orch/platform.h"

namespace {

namespace platform = orch::platform;
using orch::Tensor;
using orch::Value;

constexpr uint32_t kMemoryBytes = 192 * 1024;
constexpr uint32_t kGuard = 32;
constexpr uint8_t kPattern = 0xA5;
constexpr uint32_t kMaxArguments = 16;
constexpr uint32_t kMaxItems = 64;

// Inputs, outputs and results to expect, each with guards around it.
alignas(16) uint8_t memory[kMemoryBytes];
uint32_t used;

struct Block {
  uint32_t at;
  uint32_t bytes;
};
Block blocks[kMaxArguments + 1];
uint32_t block_count;

int32_t sizes[kMaxArguments + 1][orch::kMaxDim + 1];  // after a capacity
uint8_t orders[kMaxArguments + 1][orch::kMaxDim];

Value values[kMaxArguments + kMaxItems];
int32_t indices[kMaxArguments];
int64_t items[kMaxItems];
uint32_t item_count;

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
uint8_t* allocate(uint32_t bytes) {
  const uint32_t at = used + kGuard;
  const uint32_t whole = (bytes + 15) & ~15U;
  if (!good || whole > kMemoryBytes || at + whole + kGuard > kMemoryBytes) {
    good = false;
    return nullptr;
  }
  blocks[block_count++] = {at, bytes};
  used = at + whole + kGuard;
  memset(memory + at - kGuard, kPattern, whole + 2 * kGuard);
  return memory + at;
}

/// A tensor whose items are read.
Tensor read_tensor() {
  const uint32_t slot = block_count;
  Tensor tensor = {};
  tensor.tag = orch::Tag::Tensor;
  tensor.dtype = static_cast<orch::ScalarType>(read_as<uint8_t>());
  tensor.dim = read_as<uint8_t>();
  uint32_t bytes = static_cast<uint32_t>(orch::item_bytes(tensor.dtype));
  bool contiguous = true;
  if (tensor.dim > orch::kMaxDim || slot > kMaxArguments) good = false;
  for (int i = 0; good && i < tensor.dim; ++i) {
    sizes[slot][i + 1] = read_as<int32_t>();
    bytes *= static_cast<uint32_t>(sizes[slot][i + 1]);
  }
  for (int i = 0; good && i < tensor.dim; ++i) {
    orders[slot][i] = read_as<uint8_t>();
    contiguous = contiguous && orders[slot][i] == i;
  }
  tensor.flags = contiguous ? Tensor::kContiguous : 0;
  tensor.memory = allocate(bytes);
  if (!good) return tensor;
  tensor.dims = sizes[slot] + 1;
  tensor.dim_order = orders[slot];
  read(tensor.memory, bytes);
  return tensor;
}

void read_list(Value& value) {
  const uint32_t count = read_as<uint32_t>();
  if (count > kMaxItems - item_count) {
    good = false;
    return;
  }
  int64_t* const list = items + item_count;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = kMaxArguments + item_count++;
    values[index].set_int(read_as<int64_t>());
    list[i] = index;
  }
  value.set_list(orch::Tag::IntList, list, count);
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

/// Reads a call and carries it out.
void call(uint32_t (&result)[3]) {
  used = block_count = item_count = 0;
  char name[256] = {};
  read(name, read_as<uint8_t>());
  read_as<uint64_t>();  // tolerances: these are integers
  read_as<uint64_t>();
  const uint32_t count = read_as<uint8_t>();
  if (count > kMaxArguments) good = false;
  Block wanted = {};
  Block written = {};
  for (uint32_t i = 0; good && i < count; ++i) {
    indices[i] = static_cast<int32_t>(i);
    switch (read_as<uint8_t>()) {
      case 0:
        values[i].set_none();
        break;
      case 1:
        values[i].set_tensor(read_tensor());
        break;
      case 2:
        values[i].set_int(read_as<int64_t>());
        break;
      case 3:
        values[i].set_double(read_as<double>());
        break;
      case 4:
        values[i].set_bool(read_as<uint8_t>() != 0);
        break;
      case 5:
        read_list(values[i]);
        break;
      case 6: {
        Tensor out = read_tensor();
        if (!good) break;
        wanted = blocks[block_count - 1];
        out.memory = allocate(wanted.bytes);
        written = blocks[block_count - 1];
        values[i].set_tensor(out);
        break;
      }
      default:
        good = false;
    }
  }
  if (!good) return;
  result[0] = 255;
  for (const auto& entry : kKernels) {
    if (memcmp(entry.name, name, strlen(entry.name) + 1) != 0) continue;
    const orch::Error error = entry.kernel({values, indices, count});
    result[0] = static_cast<uint32_t>(error);
  }
  result[1] = 0;
  for (uint32_t i = 0; i < wanted.bytes; ++i) {
    result[1] += memory[wanted.at + i] != memory[written.at + i];
  }
  result[2] = changed_guards();
}

}  // namespace

int orch_application(const char* request, const char* response) {
  from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  if (from < 0 || to < 0) return 3;
  read_as<uint64_t>();  // the word the file begins with
  for (uint32_t left = read_as<uint32_t>(); good && left > 0; --left) {
    uint32_t result[3] = {};
    call(result);
    if (!good || !platform::write(to, result, sizeof result)) return 4;
  }
  platform::close(from);
  platform::close(to);
  return good ? 0 : 3;
}
