// A delegate that runs a tiny bytecode: add, multiply and leaky ReLU on float
// tensors of one size, item by item.
//
// What export.py writes, little endian:
//   "ELW1"
//   count of inputs, constants, operations, outputs (a byte each)
//   count of items of every tensor (4 bytes)
//   operations (4 bytes each): code, register a, register b, 0
//   register of each output (a byte each; together a multiple of 4 bytes)
//   constants: their items as floats
// Inputs, constants and results of operations are registers, in this order.
// The slope of leaky ReLU is the setting "negative_slope".

#include <stdint.h>
#include <string.h>

#include "orch/delegate.h"

namespace elementwise {
namespace {

using orch::Error;

constexpr uint32_t kMostRegisters = 16;
constexpr uint32_t kHeaderBytes = 12;
constexpr uint32_t kOperationBytes = 4;

enum Code : uint8_t { kAdd, kMultiply, kLeakyRelu, kCodes };

/// What `init` found out. The bytes lie at any address, floats are copied.
struct State {
  uint32_t numel;
  uint32_t constants_at;
  float slope;
};

struct Counts {
  uint32_t inputs;
  uint32_t constants;
  uint32_t operations;
  uint32_t outputs;
};

Counts counts_of(const uint8_t* code) {
  return {code[4], code[5], code[6], code[7]};
}

float float_at(const uint8_t* bytes) {
  float value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

float apply(uint8_t code, float a, float b, float slope) {
  switch (code) {
    case kAdd:
      return a + b;
    case kMultiply:
      return a * b;
    default:
      return a > 0 ? a : a * slope;
  }
}

}  // namespace

/// Checks all of the bytecode: the bytes may come from anybody.
Error init(const orch::DelegateHandle& handle,
           const orch::CompileSpecs& specs) {
  const uint8_t* const code = handle.processed.data();
  const size_t size = handle.processed.size();
  ORCH_CHECK(size >= kHeaderBytes && memcmp(code, "ELW1", 4) == 0,
             Error::InvalidProgram);
  const Counts counts = counts_of(code);
  State& state = orch::state_of<State>(handle);
  memcpy(&state.numel, code + 8, sizeof state.numel);
  const uint32_t first = counts.inputs + counts.constants;
  const uint32_t registers = first + counts.operations;
  state.constants_at = kHeaderBytes + counts.operations * kOperationBytes +
                       (counts.outputs + 3) / 4 * 4;
  // No sum can overflow: all counts are bytes.
  ORCH_CHECK(registers <= kMostRegisters &&
                 size == state.constants_at + uint64_t{counts.constants} *
                                                  state.numel * sizeof(float),
             Error::InvalidProgram);
  bool uses_slope = false;
  for (uint32_t i = 0; i < counts.operations; ++i) {
    const uint8_t* const operation = code + kHeaderBytes + i * kOperationBytes;
    // Registers that are written before.
    ORCH_CHECK(operation[0] < kCodes && operation[1] < first + i &&
                   operation[2] < first + i,
               Error::InvalidProgram);
    uses_slope = uses_slope || operation[0] == kLeakyRelu;
  }
  const uint8_t* const outputs =
      code + kHeaderBytes + counts.operations * kOperationBytes;
  for (uint32_t i = 0; i < counts.outputs; ++i) {
    ORCH_CHECK(outputs[i] < registers, Error::InvalidProgram);
  }
  if (!uses_slope) return Error::Ok;
  orch::Span<const uint8_t> slope;
  ORCH_TRY(specs.find("negative_slope", slope));
  ORCH_CHECK(slope.size() == sizeof(float), Error::InvalidProgram);
  state.slope = float_at(slope.data());
  return Error::Ok;
}

/// Arguments are the inputs, then the outputs.
Error execute(const orch::DelegateHandle& handle, const orch::Args& args) {
  const uint8_t* const code = handle.processed.data();
  const State& state = orch::state_of<State>(handle);
  const Counts counts = counts_of(code);
  ORCH_CHECK(args.count() == counts.inputs + counts.outputs,
             Error::InvalidArgument);
  for (uint32_t i = 0; i < args.count(); ++i) {
    const orch::Tensor* const tensor =
        i < counts.inputs
            ? orch::tensor_argument(args, i, orch::ScalarType::Float)
            : orch::writable_argument(args, i, orch::ScalarType::Float);
    ORCH_CHECK(tensor != nullptr && tensor->contiguous() &&
                   static_cast<uint32_t>(tensor->numel()) == state.numel,
               Error::InvalidArgument);
  }
  const uint8_t* const operations = code + kHeaderBytes;
  const uint8_t* const outputs =
      operations + counts.operations * kOperationBytes;
  for (uint32_t item = 0; item < state.numel; ++item) {
    float registers[kMostRegisters];
    uint32_t next = 0;
    for (uint32_t i = 0; i < counts.inputs; ++i) {
      registers[next++] = args.tensor(static_cast<int>(i)).data<float>()[item];
    }
    for (uint32_t i = 0; i < counts.constants; ++i) {
      registers[next++] = float_at(code + state.constants_at +
                                   (i * state.numel + item) * sizeof(float));
    }
    for (uint32_t i = 0; i < counts.operations; ++i) {
      const uint8_t* const operation = operations + i * kOperationBytes;
      registers[next++] = apply(operation[0], registers[operation[1]],
                                registers[operation[2]], state.slope);
    }
    for (uint32_t i = 0; i < counts.outputs; ++i) {
      const int index = static_cast<int>(counts.inputs + i);
      args.tensor(index).mutable_data<float>()[item] = registers[outputs[i]];
    }
  }
  return Error::Ok;
}

}  // namespace elementwise
