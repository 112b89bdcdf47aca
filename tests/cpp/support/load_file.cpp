// Loads and runs `.pte` files with the device loader, in exactly the memory
// they ask for.
//
//   load_file check|shape FILE...
//     Per file a line `open ERROR`, then per method a line `method INDEX` with
//     `load ERROR`, `state BYTES` and, once it is loaded, `less_state ERROR`
//     (one byte of state less), `less_arena ERROR...` (one byte less, arena by
//     arena; `-` for one of no bytes), `inputs BYTES:ERROR...` (one more in the
//     first dimension; `-` if it has none), `outputs BYTES:ERROR...` (one byte
//     less for it) and `run ERROR INSTRUCTION`. With `shape`
//     every operator has a stand-in for a kernel, which takes any call.
//   load_file work FILE...
//     Loads the first method of each, with stand-ins for its kernels, and tells
//     the error and how many comparisons that took: the same on any machine.
//   load_file replace FACTS FILE... [-- FACTS FILE...]...
//     Per file a line with the error of each method of a firmware when the file
//     is to take the place of its model. FACTS holds words: `kernel NAME
//     SIGNATURE KEY COUNT DTYPE...` (KEY is `-` for any), and per method
//     `method NAME STATE COUNT ARENA...` followed by its `input` and `output`
//     (TAG DTYPE FLAGS COUNT SIZE... DIM...), all as numbers.
//   load_file run FILE METHOD INPUTS OUTPUTS
//     Runs a method once. The files hold values one after the other: a letter,
//     then for `I` and `B` an int64, for `D` a double, for `S` the length
//     (uint32) and bytes of a string, for `T` dtype and rank (a byte each),
//     sizes (int32) and items in the dim order of the program; for `?` nothing.
//   load_file serve [times]
//     Runs the first method of each program on the standard input, which holds
//     a length (uint32) and bytes of the program, then of its inputs as for
//     `run`. Answers with lengths and texts: the step that failed and its
//     error, empty if none did, and the outputs. With `times` after it a third
//     one follows: how many microseconds of processor time the run took.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "orch/loader.h"
#include "orch/method.h"
#include "orch/model.h"
#include "support/method_blocks.h"
#include "support/stand_ins.h"

/// Steps of the loader: the sanitizers' coverage calls one of these for every
/// comparison of numbers.
static uint64_t comparisons = 0;
extern "C" {
void __sanitizer_cov_trace_cmp1(uint8_t, uint8_t) { ++comparisons; }
void __sanitizer_cov_trace_cmp2(uint16_t, uint16_t) { ++comparisons; }
void __sanitizer_cov_trace_cmp4(uint32_t, uint32_t) { ++comparisons; }
void __sanitizer_cov_trace_cmp8(uint64_t, uint64_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp1(uint8_t, uint8_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp2(uint16_t, uint16_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp4(uint32_t, uint32_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp8(uint64_t, uint64_t) { ++comparisons; }
}

namespace orch::test {
namespace {

/// Ends loops of damaged programs; those of good ones are far shorter.
constexpr uint32_t kInstructionLimit = 5000;
/// More than any program that is meant to be loaded needs.
constexpr size_t kArenaLimit = size_t{1} << 26;

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

Block read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) die(std::string("cannot read ") + path);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

/// A method with memory of its own.
struct Loaded {
  Arenas arenas;
  Block state;
  MethodImage image;
  size_t state_used = 0;
  Error error = Error::Ok;

  /// `less_state` bytes fewer than needed, and one byte fewer in arena
  /// `less_arena`.
  Loaded(const Program& program, Span<const uint8_t> bytes, uint32_t index,
         KernelTable kernels, size_t less_state = 0,
         size_t less_arena = SIZE_MAX) {
    std::vector<int64_t> sizes = arena_sizes(bytes, index);
    const Arenas full(sizes, kArenaLimit);
    size_t needed = 0;
    MethodImage none;
    error =
        load_method(program, index, kernels, {{}, full.spans()}, none, needed);
    state_used = needed;
    if (error != Error::StateTooSmall && error != Error::Ok) return;
    if (less_arena < sizes.size()) --sizes[less_arena];
    arenas = Arenas(sizes, kArenaLimit);
    state = Block(needed - less_state);
    error = load_method(program, index, kernels, {state.span(), arenas.spans()},
                        image, state_used);
  }
};

/// What a tensor of the interface is given at most, and the error if that is
/// exceeded: by one item in an input, by one byte that an output has not.
void print_limits(const ModelMethod& method) {
  const LoadedMethod& copy = *method.loaded;
  std::printf(" inputs");
  for (uint32_t i = 0; i < copy.image.inputs.size(); ++i) {
    const Value& value = input(method, i);
    if (!value.is_tensor() || value.tensor().dim == 0) {
      std::printf(" %zu:-", value.is_tensor() ? value.tensor().nbytes() : 8);
      continue;
    }
    const Tensor& tensor = value.tensor();
    const size_t size = tensor.nbytes();
    std::vector<int32_t> sizes(tensor.dims, tensor.dims + tensor.dim);
    const Block data(size);
    const Span<const int32_t> span(sizes.data(), sizes.size());
    if (set_input(method, i, data.data(), span) != Error::Ok) {
      die("an input does not take its own size");
    }
    ++sizes[0];
    std::printf(" %zu:%s", size,
                to_string(set_input(method, i, data.data(), span)));
  }
  std::printf(" outputs");
  for (uint32_t i = 0; i < copy.image.outputs.size(); ++i) {
    const Value& value = output(method, i);
    const size_t size = value.is_tensor() ? value.tensor().nbytes() : 8;
    if (!value.is_tensor() || size == 0) {
      std::printf(" %zu:-", size);
      continue;
    }
    const Block data(size);
    if (get_output(method, i, data.data(), size, nullptr) != Error::Ok) {
      die("an output does not fit its own size");
    }
    const Block less(size - 1);
    std::printf(
        " %zu:%s", size,
        to_string(get_output(method, i, less.data(), less.size(), nullptr)));
  }
}

void check_method(const Program& program, Span<const uint8_t> bytes,
                  uint32_t index, KernelTable kernels) {
  const Loaded loaded(program, bytes, index, kernels);
  std::printf("method %" PRIu32 " load %s state %zu", index,
              to_string(loaded.error), loaded.state_used);
  if (loaded.error == Error::Ok) {
    if (loaded.state_used != 0) {
      const Loaded less(program, bytes, index, kernels, 1);
      std::printf(" less_state %s", to_string(less.error));
    }
    std::printf(" less_arena");
    const Span<const Span<uint8_t>> arenas = loaded.arenas.spans();
    for (size_t i = 0; i < arenas.size(); ++i) {
      if (arenas[i].empty()) {
        std::printf(" -");
        continue;
      }
      const Loaded less(program, bytes, index, kernels, 0, i);
      std::printf(" %s", to_string(less.error));
    }
    LoadedMethod copy = {};
    copy.image = loaded.image;
    copy.state_used = 1;
    const ModelMethod method = {"", "",    {},      0,          {},
                                {}, &copy, nullptr, load_linked};
    const CallerBlocks given(method);
    print_limits(method);
    loaded.arenas.fill(0);  // indices among the inputs are in range
    const RunStatus status = execute(loaded.image, kInstructionLimit);
    std::printf(" run %s %" PRIu32, to_string(status.error),
                status.instruction);
  }
  std::printf("\n");
}

int check(int count, char** files, bool stand_ins) {
  for (int i = 0; i < count; ++i) {
    const Block file = read_file(files[i]);
    Program program;
    const Error error = Program::open(file.bytes(), program);
    std::printf("open %s\n", to_string(error));
    if (error != Error::Ok) continue;
    const StandIns kernels(file.bytes(), {});
    for (uint32_t m = 0; m < program.method_count(); ++m) {
      check_method(program, file.bytes(), m,
                   stand_ins ? kernels.table() : kRegisteredKernels);
    }
  }
  return 0;
}

/// Comparisons that loading the first method takes, however it ends.
int work(int count, char** files) {
  for (int i = 0; i < count; ++i) {
    const Block file = read_file(files[i]);
    const StandIns kernels(file.bytes(), {});
    const Arenas arenas(arena_sizes(file.bytes(), 0), kArenaLimit);
    const Block state(size_t{1} << 24);
    MethodImage image;
    size_t used = 0;
    comparisons = 0;
    Program program;
    Error error = Program::open(file.bytes(), program);
    if (error == Error::Ok) {
      error = load_method(program, 0, kernels.table(),
                          {state.span(), arenas.spans()}, image, used);
    }
    std::printf("%s %" PRIu64 "\n", to_string(error), comparisons);
  }
  return 0;
}

/// What a firmware has for programs: read from a file of words.
struct Firmware {
  struct Entry {
    std::string name;
    std::string signature;
    std::string key;
    DtypeSet dtypes;
  };
  struct PortFacts {
    Port port;
    std::vector<int32_t> sizes;
    std::vector<uint8_t> order;
  };
  struct Method {
    std::string name;
    size_t state = 0;
    std::vector<int64_t> arenas;
    std::vector<PortFacts> inputs;
    std::vector<PortFacts> outputs;
  };
  std::vector<Entry> entries;
  std::vector<Method> methods;

  explicit Firmware(const char* path) {
    std::ifstream file(path);
    if (!file) die(std::string("cannot read ") + path);
    const auto number = [&file] {
      int64_t value = 0;
      if (!(file >> value)) die("a number is missing");
      return value;
    };
    for (std::string word; file >> word;) {
      if (word == "kernel") {
        Entry entry;
        file >> entry.name >> entry.signature >> entry.key;
        for (int64_t left = number(); left > 0; --left) {
          entry.dtypes.bits |= 1U << number();
        }
        entries.push_back(entry);
      } else if (word == "method") {
        Method method;
        file >> method.name;
        method.state = static_cast<size_t>(number());
        for (int64_t left = number(); left > 0; --left)
          method.arenas.push_back(number());
        methods.push_back(method);
      } else if ((word == "input" || word == "output") && !methods.empty()) {
        PortFacts facts;
        facts.port.tag = static_cast<Tag>(number());
        facts.port.dtype = static_cast<ScalarType>(number());
        facts.port.flags = static_cast<uint8_t>(number());
        facts.port.dim = static_cast<uint8_t>(number());
        for (int i = 0; i < facts.port.dim; ++i)
          facts.sizes.push_back(static_cast<int32_t>(number()));
        for (int i = 0; i < facts.port.dim; ++i)
          facts.order.push_back(static_cast<uint8_t>(number()));
        Method& method = methods.back();
        (word == "input" ? method.inputs : method.outputs).push_back(facts);
      } else {
        die("a word that means nothing: " + word);
      }
    }
  }
};

std::vector<Port> ports(const std::vector<Firmware::PortFacts>& all) {
  std::vector<Port> found;
  for (const Firmware::PortFacts& facts : all) {
    found.push_back(facts.port);
    found.back().sizes = facts.sizes.data();
    found.back().order = facts.order.data();
  }
  return found;
}

void replace_all(const char* facts, int count, char** files) {
  const Firmware firmware(facts);
  std::vector<Kernel> table;
  for (const Firmware::Entry& entry : firmware.entries) {
    table.push_back({entry.name.c_str(), entry.signature.c_str(),
                     entry.key == "-" ? nullptr : entry.key.c_str(),
                     [](const Args&) { return Error::Ok; }, entry.dtypes});
  }
  for (int i = 0; i < count; ++i) {
    const Block file = read_file(files[i]);
    for (const Firmware::Method& place : firmware.methods) {
      const Arenas arenas(place.arenas, kArenaLimit);
      const Block state(place.state);
      LoadedMethod loaded = {};
      const ModelMethod method = {
          "",           place.name.c_str(), {},      0,
          state.span(), arenas.spans(),     &loaded, nullptr,
          load_linked};
      const std::vector<Port> inputs = ports(place.inputs);
      const std::vector<Port> outputs = ports(place.outputs);
      const Error error = replace(
          method, file.bytes(), {inputs.data(), inputs.size()},
          {outputs.data(), outputs.size()}, {table.data(), table.size()});
      std::printf("%s ", to_string(error));
    }
    std::printf("\n");
  }
}

/// Reads values one after the other.
class Input {
 public:
  explicit Input(Block bytes) : file_(std::move(bytes)) {}

  template <typename T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  const uint8_t* take(size_t count) {
    if (count > file_.size() - at_) die("the inputs are too short");
    at_ += count;
    return file_.data() + at_ - count;
  }

 private:
  Block file_;
  size_t at_ = 0;
};

void read_value(Input& from, const ModelMethod& method, uint32_t index) {
  Value& value = input(method, index);
  const char letter = from.get<char>();
  switch (letter) {
    case 'I':
      return value.set_int(from.get<int64_t>());
    case 'B':
      return value.set_bool(from.get<int64_t>() != 0);
    case 'D':
      return value.set_double(from.get<double>());
    case 'T': {
      const auto dtype = static_cast<ScalarType>(from.get<uint8_t>());
      std::vector<int32_t> sizes(from.get<uint8_t>());
      size_t bytes = item_bytes(dtype);
      for (int32_t& size : sizes) {
        size = from.get<int32_t>();
        bytes *= static_cast<size_t>(size);
      }
      if (!value.is_tensor() || value.tensor().dtype != dtype) {
        die("an input is no tensor of its dtype");
      }
      const Error error = set_input(method, index, from.take(bytes),
                                    {sizes.data(), sizes.size()});
      if (error != Error::Ok) die(to_string(error));
      return;
    }
    default:
      die("an input of unknown kind");
  }
}

void write_value(std::ostream& to, const ModelMethod& method, uint32_t index) {
  const Value& value = output(method, index);
  const auto put = [&to](const void* data, size_t size) {
    to.write(static_cast<const char*>(data),
             static_cast<std::streamsize>(size));
  };
  switch (value.tag()) {
    case Tag::Int:
    case Tag::Bool: {
      const int64_t number = value.to_int();
      to.put(value.tag() == Tag::Int ? 'I' : 'B');
      return put(&number, sizeof number);
    }
    case Tag::Double: {
      const double number = value.to_double();
      to.put('D');
      return put(&number, sizeof number);
    }
    case Tag::Tensor: {
      const Tensor& tensor = value.tensor();
      std::vector<int32_t> sizes(tensor.dim);
      const Block items(tensor.nbytes());
      if (get_output(method, index, items.data(), items.size(), sizes.data()) !=
          Error::Ok) {
        die("an output does not fit its own size");
      }
      const uint8_t head[] = {'T', static_cast<uint8_t>(tensor.dtype),
                              tensor.dim};
      put(head, sizeof head);
      put(sizes.data(), sizes.size() * sizeof(int32_t));
      return put(items.data(), items.size());
    }
    case Tag::String: {
      const List& chars = value.list();
      to.put('S');
      put(&chars.count, sizeof chars.count);
      return put(chars.items, chars.count);
    }
    default:
      to.put('?');
  }
}

int run(const char* file, const char* name, const char* inputs,
        const char* outputs) {
  const Block bytes = read_file(file);
  Program program;
  uint32_t index = 0;
  if (Program::open(bytes.bytes(), program) != Error::Ok ||
      program.find_method(name, index) != Error::Ok) {
    die("no such method");
  }
  const Loaded probe(program, bytes.bytes(), index, kRegisteredKernels);
  LoadedMethod loaded = {};
  const ModelMethod method = {"",
                              name,
                              bytes.bytes(),
                              index,
                              probe.state.span(),
                              probe.arenas.spans(),
                              &loaded,
                              nullptr,
                              load_linked};
  const Error error = prepare(method);
  if (error != Error::Ok) die(to_string(error));
  const CallerBlocks given(method);
  Input from(read_file(inputs));
  for (uint32_t i = 0; i < loaded.image.inputs.size(); ++i)
    read_value(from, method, i);
  const RunStatus status = execute(loaded.image, kInstructionLimit);
  if (status.error != Error::Ok) die(to_string(status.error));
  std::ofstream to(outputs, std::ios::binary);
  for (uint32_t i = 0; i < loaded.image.outputs.size(); ++i)
    write_value(to, method, i);
  return to.flush() ? 0 : 2;
}

/// A length and as many bytes; false at the end.
bool read_block(std::istream& from, Block& block) {
  uint32_t size = 0;
  if (!from.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  block = Block(size);
  from.read(reinterpret_cast<char*>(block.data()),
            static_cast<std::streamsize>(size));
  return true;
}

/// Of this process, in microseconds.
double processor_time() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 +
         static_cast<double>(now.tv_nsec) / 1e3;
}

/// Runs the first method; returns what failed, or nothing.
std::string answer(const Block& bytes, Block inputs, std::ostream& to,
                   std::string& microseconds) {
  Program program;
  Error error = Program::open(bytes.bytes(), program);
  if (error != Error::Ok) return std::string("open ") + to_string(error);
  const Loaded probe(program, bytes.bytes(), 0, kRegisteredKernels);
  LoadedMethod loaded = {};
  const ModelMethod method = {"",
                              "forward",
                              bytes.bytes(),
                              0,
                              probe.state.span(),
                              probe.arenas.spans(),
                              &loaded,
                              nullptr,
                              load_linked};
  error = prepare(method);
  if (error != Error::Ok) return std::string("load ") + to_string(error);
  Input from(std::move(inputs));
  for (uint32_t i = 0; i < loaded.image.inputs.size(); ++i)
    read_value(from, method, i);
  const double start = processor_time();
  const RunStatus status = execute(loaded.image, kInstructionLimit);
  microseconds = std::to_string(processor_time() - start);
  if (status.error != Error::Ok) {
    return std::string("run ") + to_string(status.error);
  }
  for (uint32_t i = 0; i < loaded.image.outputs.size(); ++i)
    write_value(to, method, i);
  return "";
}

int serve(bool times) {
  Block program, inputs;
  while (read_block(std::cin, program) && read_block(std::cin, inputs)) {
    std::ostringstream outputs;
    std::string took;
    const std::string failed =
        answer(program, std::move(inputs), outputs, took);
    std::vector<std::string> texts = {failed, outputs.str()};
    if (times) texts.push_back(took);
    for (const std::string& text : texts) {
      const auto size = static_cast<uint32_t>(text.size());
      std::cout.write(reinterpret_cast<const char*>(&size), sizeof size);
      std::cout << text;
    }
    std::cout.flush();
  }
  return 0;
}

}  // namespace
}  // namespace orch::test

int main(int count, char** arguments) {
  const std::string command = count > 1 ? arguments[1] : "";
  if (command == "check" || command == "shape") {
    return orch::test::check(count - 2, arguments + 2, command == "shape");
  }
  if (command == "work") {
    return orch::test::work(count - 2, arguments + 2);
  }
  if (command == "replace" && count > 2) {
    for (int at = 2, end = at; at < count; at = end + 1) {
      end = at;
      while (end < count && std::strcmp(arguments[end], "--") != 0) ++end;
      orch::test::replace_all(arguments[at], end - at - 1, arguments + at + 1);
    }
    return 0;
  }
  if (command == "run" && count == 6) {
    return orch::test::run(arguments[2], arguments[3], arguments[4],
                           arguments[5]);
  }
  const bool times = count == 3 && std::strcmp(arguments[2], "times") == 0;
  if (command == "serve" && (count == 2 || times)) {
    return orch::test::serve(times);
  }
  std::fprintf(
      stderr,
      "usage: load_file check|shape|work FILE... | replace FACTS FILE..."
      " | run FILE METHOD IN OUT | serve [times]\n");
  return 2;
}
