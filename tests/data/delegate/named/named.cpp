// A delegate that runs y = x @ w.T + b with weights that it finds by name.
//
// What make.py writes, little endian: "NMD1", inputs and outputs (2 bytes
// each), lengths of the two keys (a byte each), the keys.

#include <stdint.h>
#include <string.h>

#include "orch/delegate.h"

namespace named {
namespace {

using orch::Error;
using orch::Span;

constexpr size_t kHeaderBytes = 10;

struct State {
  uint32_t key_bytes;
  uint32_t inputs;
  uint32_t outputs;
};

struct Weights {
  Span<const uint8_t> weight;
  Span<const uint8_t> bias;
};

float float_at(Span<const uint8_t> data, size_t index) {
  float value;
  memcpy(&value, data.data() + index * sizeof value, sizeof value);
  return value;
}

uint16_t number_at(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

Error find(const orch::DelegateHandle& handle, Weights& weights) {
  const Span<const uint8_t> code = handle.processed;
  const char* const keys =
      reinterpret_cast<const char*>(code.data() + kHeaderBytes);
  const size_t first = orch::state_of<State>(handle).key_bytes;
  const size_t second = code.size() - kHeaderBytes - first;
  ORCH_TRY(handle.named(Span<const char>(keys, first), weights.weight));
  return handle.named(Span<const char>(keys + first, second), weights.bias);
}

}  // namespace

Error init(const orch::DelegateHandle& handle, const orch::CompileSpecs&) {
  const uint8_t* const code = handle.processed.data();
  const size_t size = handle.processed.size();
  ORCH_CHECK(size >= kHeaderBytes && memcmp(code, "NMD1", 4) == 0 &&
                 size == kHeaderBytes + code[8] + code[9],
             Error::InvalidProgram);
  State& state = orch::state_of<State>(handle);
  state = {code[8], number_at(code + 4), number_at(code + 6)};
  Weights weights;
  ORCH_TRY(find(handle, weights));
  ORCH_CHECK(
      weights.weight.size() == size_t{4} * state.inputs * state.outputs &&
          weights.bias.size() == size_t{4} * state.outputs,
      Error::InvalidProgram);
  return Error::Ok;
}

Error execute(const orch::DelegateHandle& handle, const orch::Args& args) {
  const State& state = orch::state_of<State>(handle);
  const orch::Tensor* const x =
      orch::tensor_argument(args, 0, orch::ScalarType::Float);
  orch::Tensor* const y =
      orch::writable_argument(args, 1, orch::ScalarType::Float);
  ORCH_CHECK(x != nullptr && y != nullptr && x->contiguous() &&
                 y->contiguous() && x->dim == 2 && y->dim == 2 &&
                 x->size(0) == y->size(0) &&
                 static_cast<uint32_t>(x->size(1)) == state.inputs &&
                 static_cast<uint32_t>(y->size(1)) == state.outputs,
             Error::InvalidArgument);
  Weights weights;
  ORCH_TRY(find(handle, weights));
  const float* row = x->data<float>();
  float* out = y->mutable_data<float>();
  for (int32_t r = 0; r < x->size(0); ++r, row += state.inputs) {
    for (size_t o = 0; o < state.outputs; ++o) {
      float sum = float_at(weights.bias, o);
      for (size_t i = 0; i < state.inputs; ++i) {
        sum += row[i] * float_at(weights.weight, o * state.inputs + i);
      }
      *out++ = sum;
    }
  }
  return Error::Ok;
}

}  // namespace named
