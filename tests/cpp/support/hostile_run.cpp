#include "support/hostile_run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "orch/loader.h"
#include "orch/method.h"
#include "orch/model.h"
#include "support/method_blocks.h"
#include "support/stand_ins.h"

namespace orch::test {
namespace {

constexpr uint32_t kInstructionLimit = 200;
constexpr uint32_t kMaxMethods = 8;
// A kernel's work grows with its tensors: small arenas keep every run short.
constexpr size_t kArenaLimit = size_t{1} << 14;
constexpr size_t kStateLimit = size_t{1} << 20;

void require(bool condition, const char* broken) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", broken);
  std::abort();
}

/// A dynamic input gets smaller, as a caller may make it, then all of it is
/// written.
void write_inputs(const ModelMethod& method, int32_t shrink) {
  const MethodImage& image = method.loaded->image;
  for (uint32_t i = 0; i < image.inputs.size(); ++i) {
    Value& value = input(method, i);
    if (!value.is_tensor()) continue;
    const Tensor tensor = value.tensor();
    int32_t sizes[kMaxDim] = {};
    for (int d = 0; d < tensor.dim; ++d) {
      sizes[d] = tensor.size(d);
      if ((tensor.flags & Tensor::kDynamic) != 0) sizes[d] /= shrink;
    }
    const Block items(tensor.nbytes());
    require(
        set_input(method, i, items.data(), {sizes, tensor.dim}) == Error::Ok,
        "an input can be made smaller");
  }
}

void read_outputs(const ModelMethod& method) {
  const MethodImage& image = method.loaded->image;
  for (uint32_t i = 0; i < image.outputs.size(); ++i) {
    const Value& value = output(method, i);
    if (!value.is_tensor()) continue;
    const size_t bytes = value.tensor().nbytes();
    const Block items(bytes);
    int32_t sizes[kMaxDim];
    require(get_output(method, i, items.data(), bytes, sizes) == Error::Ok,
            "an output fits a block of its own size");
    if (bytes == 0) continue;
    require(get_output(method, i, items.data(), bytes - 1, sizes) ==
                Error::ShapeTooLarge,
            "an output that does not fit is refused");
  }
}

/// Inputs or outputs as an API would promise them.
class Ports {
 public:
  Ports(const MethodImage& image, Span<const int32_t> indices) {
    std::vector<int32_t> seen;
    for (const int32_t index : indices) {
      const Value& value = image.values[static_cast<size_t>(index)];
      Port port = {value.tag(), {}, {}, {}, {}, {}};
      sizes_.emplace_back();
      if (value.is_tensor()) {
        const Tensor& tensor = value.tensor();
        sizes_.back().assign(tensor.dims, tensor.dims + tensor.dim);
        port.dtype = tensor.dtype;
        port.flags = tensor.flags & Tensor::kDynamic;
        // An output that is an input, or was named before, is read there.
        const bool is_own = indices.data() != image.outputs.data() ||
                            ((tensor.flags & Tensor::kReadOnly) == 0 &&
                             std::count(seen.begin(), seen.end(), index) == 0);
        if (is_own) port.flags |= tensor.flags & Tensor::kCaller;
        port.dim = tensor.dim;
        port.sizes = sizes_.back().data();
        port.order = tensor.order();
      }
      ports_.push_back(port);
      seen.push_back(index);
    }
  }
  Span<const Port> span() const { return {ports_.data(), ports_.size()}; }
  std::vector<Port>& all() { return ports_; }

 private:
  std::vector<std::vector<int32_t>> sizes_;
  std::vector<Port> ports_;
};

/// Bytes that the caller has to give for one call. Nothing in a program bounds
/// them, and a kernel's work grows with them as well.
size_t caller_bytes(const ModelMethod& method) {
  const MethodImage& image = method.loaded->image;
  size_t sum = 0;
  const auto add = [&sum](const Value& value) {
    if (!value.is_tensor()) return;
    const Tensor& tensor = value.tensor();
    if ((tensor.flags & Tensor::kCaller) != 0) {
      sum += std::min(tensor.nbytes(), kArenaLimit + 1);
    }
  };
  for (uint32_t i = 0; i < image.inputs.size(); ++i) add(input(method, i));
  for (uint32_t i = 0; i < image.outputs.size(); ++i) add(output(method, i));
  return sum;
}

/// The program takes the place of itself, and of one with another interface.
void replace_by_itself(const ModelMethod& method, const Program& program,
                       KernelTable kernels) {
  const MethodImage& image = method.loaded->image;
  const Ports inputs(image, image.inputs);
  Ports outputs(image, image.outputs);
  uint32_t found = 0;
  // Of two methods with one name the first is meant.
  const bool same = program.find_method(method.name, found) == Error::Ok &&
                    found == method.method_index;
  const auto again = [&] {
    return replace(method, method.program, inputs.span(), outputs.span(),
                   kernels);
  };
  Error error = again();
  require(!same || error == Error::Ok, "a program takes its own place");
  require((error == Error::Ok) == (method.loaded->state_used != 0),
          "a method is loaded exactly if it took the place");
  if (error == Error::Ok) {
    const CallerBlocks given(method);
    (void)execute(image, kInstructionLimit);
  }
  if (outputs.all().empty()) {
    outputs.all().push_back({Tag::Int, {}, {}, {}, {}, {}});
  } else {
    Tag& tag = outputs.all().back().tag;
    tag = tag == Tag::None ? Tag::Int : Tag::None;
  }
  error = again();
  require(!same || error == Error::InvalidArgument,
          "another interface is noticed");
  require(error == Error::Ok || method.loaded->state_used == 0,
          "what was refused is not loaded");
}

/// Loads one method, and runs it if that works.
void run_method(const Program& program, Span<const uint8_t> bytes,
                uint32_t index, KernelTable kernels, HostileCounts& counts) {
  const Arenas arenas(arena_sizes(bytes, index), kArenaLimit);
  LoadedMethod loaded = {};
  const auto load = [&](Span<uint8_t> state, size_t& used) {
    return load_method(program, index, kernels, {state, arenas.spans()},
                       loaded.image, used);
  };
  size_t needed = 0;
  const Error without_state = load({}, needed);
  if (without_state != Error::StateTooSmall && without_state != Error::Ok)
    return;
  if (needed > kStateLimit) return;

  size_t used = 0;
  Error with_less = Error::StateTooSmall;
  if (needed != 0) {
    const Block less(needed - 1);
    with_less = load(less.span(), used);
    require(with_less != Error::StateTooSmall || used == needed,
            "the state needed is always the same");
  }
  const Block state(needed);
  const Error error = load(state.span(), used);
  // What is wrong in a program may be seen before the state is at its end.
  require(with_less == Error::StateTooSmall ||
              (with_less != Error::Ok && with_less == error),
          "a byte of state too little is noticed");
  require(error != Error::StateTooSmall, "the state is as large as was said");
  if (error != Error::Ok) return;
  require(used == needed, "the state used is what was said");
  ++counts.loaded;

  const Span<const char> name = program.method_name(index);
  const std::string text(name.data() == nullptr ? "" : name.data(),
                         name.size());
  const ModelMethod method = {"",      text.c_str(), bytes,
                              index,   state.span(), arenas.spans(),
                              &loaded, nullptr,      load_linked};
  if (caller_bytes(method) > kArenaLimit) return;
  for (int32_t shrink = 1; shrink <= 3; ++shrink) {
    if (shrink == 3) {  // from the start again
      require(load(state.span(), used) == Error::Ok,
              "what was loaded can be loaded again");
    }
    const CallerBlocks given(method);
    write_inputs(method, shrink);
    const RunStatus status = execute(loaded.image, kInstructionLimit);
    require(status.error == Error::Ok ||
                status.instruction < loaded.image.instructions.size(),
            "the instruction that failed exists");
    if (status.error == Error::Ok) ++counts.completed;
    read_outputs(method);
  }
  require(load(state.span(), used) == Error::Ok, "and once more");
  const CallerBlocks given(method);
  const RunStatus first = execute(loaded.image, 1);
  require(first.error == Error::Ok ||
              first.instruction < loaded.image.instructions.size(),
          "the instruction that a limit stops at exists");
  require(load(state.span(), used) == Error::Ok, "and for the last time");
  replace_by_itself(method, program, kernels);
}

uint32_t sum_of(Span<const uint8_t> bytes) {
  uint32_t sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  return sum;
}

}  // namespace

HostileCounts run_hostile(Span<const uint8_t> original) {
  HostileCounts counts;
  const Block copy(original.data(), original.size());
  const Span<const uint8_t> bytes = copy.bytes();
  Program program;
  if (Program::open(bytes, program) != Error::Ok) return counts;
  counts.opened = 1;
  const uint32_t methods = std::min(program.method_count(), kMaxMethods);
  for (uint32_t i = 0; i < methods; ++i) {
    // Names are looked at as they are: not terminated, perhaps empty.
    uint32_t sum = 0;
    for (const char c : program.method_name(i)) {
      sum += static_cast<unsigned char>(c);
    }
    require(sum != UINT32_MAX, "a name can be read");
    // Real kernels as far as there are any; then, in turns, what a program
    // without any kernel of its own does to loader and executor, and what a
    // product does, which has no stand-ins.
    const StandIns mixed(bytes, kRegisteredKernels);
    run_method(program, bytes, i, mixed.table(), counts);
    if ((sum_of(bytes) & 1) == 0) {
      const StandIns only(bytes, {});
      run_method(program, bytes, i, only.table(), counts);
    } else {
      run_method(program, bytes, i, kRegisteredKernels, counts);
    }
  }
  uint32_t found = 0;
  require(program.find_method("no such method", found) == Error::NotFound,
          "a method that is not there is not found");
  require(original.empty() ||
              std::memcmp(bytes.data(), original.data(), bytes.size()) == 0,
          "the program is never written");
  return counts;
}

}  // namespace orch::test
